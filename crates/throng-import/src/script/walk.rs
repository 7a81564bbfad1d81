//! The statements of a script, in the order in which they run: what both languages have in common.
//! Conditions are unknown, so both branches are taken, and a loop without a plain count runs once.

use super::world::{Known, World};
use super::{Argument, Counted, Expr, Function, ScriptKind, Statement};
use crate::model::Item;

/// A tool whose scripts are read: what its calls do.
pub(crate) trait Walk {
    fn world(&mut self) -> &mut World;

    /// What an expression does, and what it is.
    fn evaluated(&mut self, value: &Expr, line: usize, items: &mut Vec<Item>) -> Known;

    /// A statement without a counterpart, by what it begins with.
    fn keyword(&mut self, word: &str, line: usize, items: &mut Vec<Item>);

    /// `{a, b} = …`
    fn set_several(&mut self, _names: &[String], _known: &Known) {}

    /// To something that is not a name.
    fn assign(&mut self, target: &Expr, known: Known) {
        if let Some(path) = target.path() {
            self.world().set_global(&path, known);
        }
    }

    fn condition(
        &mut self,
        _condition: &Expr,
        (then, otherwise): (&[Statement], &[Statement]),
        line: usize,
        items: &mut Vec<Item>,
    ) {
        self.branches(then, otherwise, line, items);
    }

    fn branches(
        &mut self,
        then: &[Statement],
        otherwise: &[Statement],
        line: usize,
        items: &mut Vec<Item>,
    ) {
        let mut steps = self.statements(then);
        steps.extend(self.statements(otherwise));
        if steps.iter().any(|item| !matches!(item, Item::LeftOut(_))) {
            let what = say!("the condition of an `if`; its steps always run");
            items.push(Item::left_out(line, what));
        }
        items.extend(steps);
    }

    /// The steps of the function with this name, if the script has it.
    fn named(&mut self, name: &str) -> Vec<Item> {
        match self.world().get(name).cloned() {
            Some(Known::Function(function)) => self.function(&function),
            _ => Vec::new(),
        }
    }

    fn function(&mut self, function: &Function) -> Vec<Item> {
        if !self.world().enter() {
            return Vec::new();
        }
        let items = self.statements(&function.body);
        self.world().leave();
        items
    }

    /// A function of the script, where it is called: what it returns at its end.
    fn called(
        &mut self,
        function: &Function,
        arguments: &[Argument],
        line: usize,
        items: &mut Vec<Item>,
    ) -> Known {
        let mut values: Vec<(Option<&str>, Known)> = Vec::new();
        for one in arguments {
            values.push((one.name.as_deref(), self.evaluated(&one.value, line, items)));
        }
        if !self.world().enter() {
            return Known::Unknown;
        }
        let parameters = function.parameters.iter().filter(|name| *name != "self");
        for (at, name) in parameters.enumerate() {
            let named = values.iter().find(|(own, _)| *own == Some(name));
            let value = named.or_else(|| values.iter().filter(|(own, _)| own.is_none()).nth(at));
            if let Some((_, known)) = value.cloned() {
                self.world().set(name, known);
            }
        }
        let mut result = Known::Unknown;
        for statement in &function.body {
            match &statement.kind {
                ScriptKind::Return(Some(value)) => {
                    result = self.evaluated(value, statement.line, items);
                }
                _ => self.statement(statement, items),
            }
        }
        self.world().leave();
        result
    }

    fn statements(&mut self, statements: &[Statement]) -> Vec<Item> {
        let mut items = Vec::new();
        statements.iter().for_each(|statement| self.statement(statement, &mut items));
        items
    }

    fn statement(&mut self, statement: &Statement, items: &mut Vec<Item>) {
        let line = statement.line;
        match &statement.kind {
            ScriptKind::Let(names, value) => {
                let known = self.evaluated(value, line, items);
                match names.as_slice() {
                    [name] => self.world().set(name, known),
                    names => self.set_several(names, &known),
                }
            }
            ScriptKind::Assign(target, value) => {
                let known = self.evaluated(value, line, items);
                self.assign(target, known);
            }
            ScriptKind::Expr(value) | ScriptKind::Return(Some(value)) => {
                self.evaluated(value, line, items);
            }
            ScriptKind::With(value, name, body) => {
                let known = self.evaluated(value, line, items);
                if let Some(name) = name {
                    self.world().set(name, known);
                }
                items.extend(self.statements(body));
            }
            ScriptKind::If(Expr::Bool(true), body, _) => items.extend(self.statements(body)),
            ScriptKind::If(condition, then, otherwise) => {
                self.condition(condition, (then, otherwise), line, items);
            }
            ScriptKind::For(Some(counted), body) => items.extend(self.counted(counted, body)),
            ScriptKind::For(None, body) => {
                let steps = self.statements(body);
                if !steps.is_empty() {
                    items.push(loop_condition(line));
                    items.extend(steps);
                }
            }
            ScriptKind::While(_, body) => {
                items.push(loop_condition(line));
                items.extend(self.statements(body));
            }
            ScriptKind::Other(word) => self.keyword(word, line, items),
            ScriptKind::Return(None)
            | ScriptKind::Function(_)
            | ScriptKind::Class(_)
            | ScriptKind::Nothing => {}
        }
    }

    fn counted(&mut self, counted: &Counted, body: &[Statement]) -> Option<Item> {
        self.world().begin_loop(counted);
        let steps = self.statements(body);
        let is_empty = steps.is_empty();
        let item = self.world().end_loop(counted, steps);
        Some(item).filter(|_| !is_empty)
    }
}

fn loop_condition(line: usize) -> Item {
    Item::left_out(line, say!("the condition of a loop; its steps run once"))
}
