//! The tools: the purpose, the arguments, and the throng command of each. One table serves the list
//! for clients, the parsing of calls, and the command line.

use std::ffi::OsString;

use serde_json::{Map, Value, json};
use throng_base::diagnostic::did_you_mean;
use throng_base::{Diagnostic, Said};

/// The scenario of a call, as text or a file.
pub(super) const TEXT: &str = "scenario";
pub(super) const FILE: &str = "file";
/// The path of standard input for a program.
const INPUT: &str = "/dev/stdin";

pub(super) struct Tool {
    pub(super) name: &'static str,
    title: Said,
    about: Said,
    fields: &'static [Field],
    /// It sends requests, so targets must be allowed.
    pub(super) sends: bool,
    /// Its command can print JSON.
    pub(super) json: bool,
}

struct Field {
    name: &'static str,
    kind: ToolKind,
    about: Said,
    is_required: bool,
}

impl Field {
    const fn optional(name: &'static str, kind: ToolKind, about: Said) -> Field {
        Field { name, kind, about, is_required: false }
    }

    const fn required(name: &'static str, kind: ToolKind, about: Said) -> Field {
        Field { name, kind, about, is_required: true }
    }
}

/// The type of a field, and the command-line words that it becomes.
#[derive(Clone, Copy, PartialEq)]
enum ToolKind {
    /// An operand.
    Word,
    /// Several of them.
    Words,
    /// The text of a scenario, for standard input.
    Input,
    /// `--flag=TEXT`.
    Option(&'static str),
    /// `--flag=N`.
    Count(&'static str),
    /// `--flag`, if true.
    Switch(&'static str),
    /// `--flag=TEXT` for each.
    Options(&'static str),
    /// `--flag=NAME=VALUE` for each.
    Pairs(&'static str),
}

const SCENARIO_TEXT: Field = Field::optional(
    TEXT,
    ToolKind::Input,
    say!("the scenario as YAML text; paths in it are relative to the server's working directory"),
);
const SCENARIO_FILE: Field =
    Field::optional(FILE, ToolKind::Word, say!("path of the scenario file, instead of `scenario`"));
const SET: Field = Field::optional(
    "set",
    ToolKind::Pairs("--set"),
    say!("values for variables of the scenario, by name"),
);
const USERS: Field = Field::optional(
    "users",
    ToolKind::Count("--users"),
    say!("peak number of users, instead of the scenario's"),
);
const RATE: Field = Field::optional(
    "rate",
    ToolKind::Option("--rate"),
    say!("peak rate of arrivals or iterations, such as `500/s`, instead of the scenario's"),
);
const TIME: Field = Field::optional(
    "for",
    ToolKind::Option("--for"),
    say!("duration of the load, such as `30s`, instead of the scenario's"),
);
const SEED: Field = Field::optional(
    "seed",
    ToolKind::Count("--seed"),
    say!("random seed, to reproduce the random choices of another run"),
);
const RUN: Field = Field::optional(
    "run",
    ToolKind::Word,
    say!("the run directory; by default the newest in `throng-runs`"),
);

pub(super) static TOOLS: [Tool; 8] = [
    Tool {
        name: LANGUAGE,
        title: say!("Language of scenarios"),
        about: say!(
            "How to write a scenario: one page with the whole language and examples. Read it \
             before you write or change a scenario."
        ),
        fields: &[],
        sends: false,
        json: false,
    },
    Tool {
        name: "check",
        title: say!("Check a scenario"),
        about: say!(
            "Checks a scenario and shows what it will do: steps, load, expected requests. Sends \
             nothing. Each error names the line, the cause and the fix."
        ),
        fields: &[SCENARIO_TEXT, SCENARIO_FILE, SET, USERS, RATE, TIME],
        sends: false,
        json: false,
    },
    Tool {
        name: "try",
        title: say!("Try a scenario with one user"),
        about: say!(
            "Runs each session of a scenario once with one user and shows every request, \
             response, check and saved value. Use it after `check` and before `run`."
        ),
        fields: &[
            SCENARIO_TEXT,
            SCENARIO_FILE,
            SET,
            SEED,
            Field::optional(
                "session",
                ToolKind::Option("--session"),
                say!("name of the only session to run"),
            ),
            Field::optional(
                "full",
                ToolKind::Switch("--full"),
                say!("show all data that is sent and received in full"),
            ),
        ],
        sends: true,
        json: false,
    },
    Tool {
        name: "run",
        title: say!("Run a load test"),
        about: say!(
            "Runs a scenario with its whole load, within the budget of this server, and returns \
             the summary. The run is recorded in a run directory. Canceling the call ends the run \
             gracefully and keeps its results."
        ),
        fields: &[
            SCENARIO_TEXT,
            SCENARIO_FILE,
            SET,
            USERS,
            RATE,
            TIME,
            SEED,
            Field::optional(
                "thresholds",
                ToolKind::Options("--threshold"),
                say!("thresholds in addition to those of the scenario, such as `http p99 < 50ms`"),
            ),
            Field::optional(
                "labels",
                ToolKind::Pairs("--label"),
                say!("labels of the run, by name"),
            ),
        ],
        sends: true,
        json: true,
    },
    Tool {
        name: "report",
        title: say!("Show a recorded run"),
        about: say!("Returns the summary of a recorded run: verdict, steps, errors, thresholds."),
        fields: &[RUN],
        sends: false,
        json: true,
    },
    Tool {
        name: "why",
        title: say!("Explain a recorded run"),
        about: say!(
            "Returns what went wrong in a recorded run and why: findings with evidence, in order \
             of confidence, each with the next step."
        ),
        fields: &[
            RUN,
            Field::optional(
                "slowest",
                ToolKind::Switch("--slowest"),
                say!("show where the time of the slowest attempts went instead"),
            ),
        ],
        sends: false,
        json: true,
    },
    Tool {
        name: "compare",
        title: say!("Compare runs"),
        about: say!("Compares recorded runs with a baseline and reports changes beyond noise."),
        fields: &[
            Field::required("baseline", ToolKind::Word, say!("run directory of the baseline")),
            Field::required("runs", ToolKind::Words, say!("run directories to compare with it")),
            Field::optional(
                "fail_if",
                ToolKind::Options("--fail-if"),
                say!("conditions that fail the comparison, such as `http p99 > +10%`"),
            ),
        ],
        sends: false,
        json: true,
    },
    Tool {
        name: "explain",
        title: say!("Explain a code"),
        about: say!(
            "Explains the code of a message, such as `unknown-key` in `error[unknown-key]`, and \
             how to fix it."
        ),
        fields: &[Field::optional(
            "code",
            ToolKind::Word,
            say!("the code; by default, all codes are listed"),
        )],
        sends: false,
        json: false,
    },
];

/// The tool without a command.
pub(super) const LANGUAGE: &str = "language";

/// A call as a command: its arguments, and its standard input.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Words {
    pub(super) options: Vec<OsString>,
    /// They follow `--`, so that none of them is read as an option.
    pub(super) operands: Vec<OsString>,
    pub(super) input: Option<String>,
}

pub(super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// The description for `tools/list`.
    pub(super) fn described(&self) -> Value {
        let fields = self.fields.iter();
        let properties: Map<String, Value> =
            fields.clone().map(|field| (field.name.to_string(), field.schema())).collect();
        let required: Vec<&str> = fields.filter(|it| it.is_required).map(|it| it.name).collect();
        json!({
            "name": self.name,
            "title": self.title.spoken(),
            "description": self.about.spoken(),
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": !self.sends, "openWorldHint": self.sends},
        })
    }

    /// Parses the arguments of a call.
    pub(super) fn words(&self, arguments: &Map<String, Value>) -> Result<Words, Box<Diagnostic>> {
        if let Some(name) = arguments.keys().find(|name| self.field(name).is_none()) {
            let known = self.fields.iter().map(|field| field.name);
            let near = did_you_mean(name, known.clone());
            let message = say!("`{name}` is not an argument of the tool `{}`", self.name);
            let error =
                mistake(message, say!("its arguments: {}", known.collect::<Vec<_>>().join(", ")));
            return Err(match near {
                Some(near) => Box::new(error.note(say!("did you mean `{near}`?"))),
                None => Box::new(error),
            });
        }
        let mut words = Words::default();
        for field in self.fields {
            match arguments.get(field.name) {
                None | Some(Value::Null) if field.is_required => {
                    let message = say!("the argument `{}` is missing", field.name);
                    return Err(Box::new(mistake(message, field.about.clone())));
                }
                None | Some(Value::Null) => {}
                Some(value) => field.add(value, &mut words).ok_or_else(|| {
                    let (name, kind) = (field.name, field.kind.described());
                    let message = say!("the argument `{name}` must be {kind}");
                    Box::new(mistake(message, field.about.clone()))
                })?,
            }
        }
        let takes_scenario = self.field(TEXT).is_some();
        if takes_scenario && words.input.is_some() != words.operands.is_empty() {
            let message = say!("the tool `{}` requires one scenario", self.name);
            let help = say!("give either `scenario` (YAML text) or `file` (a path)");
            return Err(Box::new(mistake(message, help)));
        }
        if words.input.is_some() {
            words.operands.push(INPUT.into());
        }
        Ok(words)
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

fn mistake(message: Said, help: Said) -> Diagnostic {
    Diagnostic::error("bad-argument", message).help(help)
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            ToolKind::Word | ToolKind::Input | ToolKind::Option(_) => json!({"type": "string"}),
            ToolKind::Count(_) => json!({"type": "integer", "minimum": 0}),
            ToolKind::Switch(_) => json!({"type": "boolean"}),
            ToolKind::Words | ToolKind::Options(_) => {
                json!({"type": "array", "items": {"type": "string"}})
            }
            ToolKind::Pairs(_) => {
                let types = ["string", "number", "boolean"];
                json!({"type": "object", "additionalProperties": {"type": types}})
            }
        };
        if self.kind == ToolKind::Words {
            schema["minItems"] = json!(1);
        }
        schema["description"] = json!(self.about.spoken());
        schema
    }

    /// None for a value of the wrong type.
    fn add(&self, value: &Value, words: &mut Words) -> Option<()> {
        match self.kind {
            ToolKind::Input => words.input = Some(value.as_str()?.to_string()),
            ToolKind::Word => words.operands.push(value.as_str()?.into()),
            ToolKind::Words => {
                let given = texts(value)?;
                words.operands.extend((!given.is_empty()).then_some(given)?);
            }
            ToolKind::Option(flag) => words.options.push(option(flag, value.as_str()?)),
            ToolKind::Count(flag) => words.options.push(option(flag, &value.as_u64()?.to_string())),
            ToolKind::Switch(flag) => {
                words.options.extend(value.as_bool()?.then(|| OsString::from(flag)));
            }
            ToolKind::Options(flag) => {
                for text in texts(value)? {
                    words.options.push(option(flag, text.to_str()?));
                }
            }
            ToolKind::Pairs(flag) => {
                for (name, value) in value.as_object()? {
                    words.options.push(option(flag, &format!("{name}={}", plain(value)?)));
                }
            }
        }
        Some(())
    }
}

impl ToolKind {
    fn described(self) -> Said {
        match self {
            ToolKind::Word | ToolKind::Input | ToolKind::Option(_) => say!("a text"),
            ToolKind::Count(_) => say!("a whole number"),
            ToolKind::Switch(_) => say!("true or false"),
            ToolKind::Words | ToolKind::Options(_) => say!("a list of strings"),
            ToolKind::Pairs(_) => say!("an object of names and values"),
        }
    }
}

fn option(flag: &str, value: &str) -> OsString {
    format!("{flag}={value}").into()
}

fn texts(value: &Value) -> Option<Vec<OsString>> {
    value.as_array()?.iter().map(|text| Some(text.as_str()?.into())).collect()
}

/// A value for the command line.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tool: &str, arguments: &Value) -> Result<Words, Box<Diagnostic>> {
        find(tool).expect("a tool").words(arguments.as_object().expect("an object"))
    }

    #[test]
    fn a_call_becomes_a_command() {
        let given = json!({"file": "--allow-commands", "set": {"a": "1 2", "b": 3, "c": true},
            "users": 5, "rate": "7/s", "thresholds": ["errors < 1%"], "seed": null});
        let made = words("run", &given).expect("a command");
        let options = [
            "--set=a=1 2",
            "--set=b=3",
            "--set=c=true",
            "--users=5",
            "--rate=7/s",
            "--threshold=errors < 1%",
        ];
        assert_eq!(made.options, options);
        assert_eq!((made.operands, made.input), (vec!["--allow-commands".into()], None));
        let made = words("check", &json!({"scenario": "a: b"})).expect("a command");
        assert_eq!(made.operands, ["/dev/stdin"]);
        assert_eq!(made.input.as_deref(), Some("a: b"));
        let made = words("try", &json!({"file": "a", "full": true})).expect("a command");
        assert_eq!(made.options, ["--full"]);
        let made = words("compare", &json!({"baseline": "a", "runs": ["b", "c"]}));
        assert_eq!(made.expect("a command").operands, ["a", "b", "c"]);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (tool, given, wanted) in [
            ("run", json!({}), "requires one scenario"),
            ("run", json!({"file": "a", "scenario": "b"}), "requires one scenario"),
            ("run", json!({"file": 1}), "`file` must be a text"),
            ("run", json!({"file": "a", "user": 5}), "`user` is not an argument"),
            ("run", json!({"file": "a", "users": -5}), "must be a whole number"),
            ("run", json!({"file": "a", "users": "5"}), "must be a whole number"),
            ("run", json!({"file": "a", "set": {"a": [1]}}), "names and values"),
            ("run", json!({"file": "a", "thresholds": "errors < 1%"}), "a list of strings"),
            ("try", json!({"file": "a", "full": "yes"}), "true or false"),
            ("compare", json!({"runs": ["a"]}), "`baseline` is missing"),
            ("compare", json!({"baseline": "a", "runs": []}), "a list of strings"),
        ] {
            let told = words(tool, &given).expect_err(wanted);
            assert!(told.message.english().contains(wanted), "{given}: {:?}", told.message);
            assert_eq!(told.code, "bad-argument");
            assert!(told.help.is_some());
        }
    }

    #[test]
    fn the_list_describes_each_argument() {
        for tool in &TOOLS {
            let described = tool.described();
            let properties = described["inputSchema"]["properties"].as_object().expect("fields");
            assert_eq!(properties.len(), tool.fields.len());
            assert!(properties.values().all(|it| it["type"].is_string()), "{described}");
            assert_eq!(described["annotations"]["readOnlyHint"], !tool.sends);
        }
    }
}
