//! Keys of SQL in the tables of the language.

macro_rules! sql {
    (rows) => {
        &[&Native {
            one: &say!("a database connection"),
            schemes: &[Scheme::Postgres, Scheme::MySql],
            url: UrlSays::Database,
            opens_itself: true,
            is_kept: true,
            failures: |text| {
                use throng_base::status::sql;
                sql::named(text).filter(|status| *status != sql::SUCCESS).collect()
            },
            flags: &["--sql"],
            in_place_of_body: Some(&say!("write `--sql 'select 1'`")),
            verbs: &["sql"],
            needs: &say!("a `sql` step requires a target with `postgres://` or `mysql://`"),
            refuses: &[(
                "connect",
                &say!("remove it: the first `sql` step of a user opens its connection"),
            )],
            step: "sql: ",
            ..BYTES
        }]
    };
    (schema) => {
        SchemaPart {
            examples: &[("SQL", "sql", &["select name from users where id = $1"])],
            patterns: &[("SQL_CHECK", "^column[.]")],
            ..NOTHING
        }
    };
    (verbs [$next:ident $($more:ident)*] {$($asking:tt)*} $($tokens:tt)*) => {
        $next! { verbs [$($more)*] {
            $($asking)*
            "sql" sql SQL Sql (target crate::builtin::sql::read_sql),
        } $($tokens)* }
    };
    (maps [$next:ident $($more:ident)*] $scenario:tt $connect:tt $check:tt $kinds:tt
        {$($maps:tt)*} $then:tt) => { $next! { maps [$($more)*] $scenario $connect $check $kinds {
    $($maps)*
    SQL Sql = "a `sql` step" {
        sql: Text =>
            "The statement: `select name from users where id = $1`. Without `with`, several \
             statements are possible: `begin; …; commit`.",
        with: List(&OneOf(&[Anything, Nothing])) =>
            "The values of `$1`, `$2` and so on, each with its type: `[\"${user.id}\", 7, null]`.",
        prepare: Bool =>
            "`false` does not prepare the statement on the server. Default: `true` for single \
             statements without expressions.",
        target: Text => "The target to use, one of `targets`; required if several are possible.",
        name: Text => ROW,
        label: LABELS => LABEL,
        check: Kind(&SQL_CHECK) => "Checks of the result.",
        save [Saves]: Map(&Text) =>
            "Values to save from the first row: `{name: column.name, count: rows}`.",
        timeout: Duration => "The timeout from sending the statement to the end of its result.",
        on_error: ON_ERRORS => "The action if the step fails.",
        retry: RETRIES => "Retries if the step fails: `{on: [40001, 40P01], times: 5}`.",
    }
    SQL_CHECK SqlCheck = "a check of a `sql` step" {
        rows: Text => "The number of rows that were returned or changed: `1`, `> 0`.",
        affected: Text => "The number of rows that were inserted, updated or deleted: `1`, `> 0`.",
        insert_id: Text => "On MySQL, the key that the server gave to an inserted row: `> 0`.",
        column: Map(&Anything) =>
            "Columns of the first row: `{name: ann}`; `column.name: ann` is a short form.",
        sqlstate: TEXTS =>
            "The SQLSTATE: `00000` for success, `23505`, `unique_violation`, or a list of them.",
        time: Text => "The response time: `< 500ms`.",
    }
    } $then } };
    ($part:ident [$next:ident $($more:ident)*] $($tokens:tt)*) => {
        $next! { $part [$($more)*] $($tokens)* }
    };
}
