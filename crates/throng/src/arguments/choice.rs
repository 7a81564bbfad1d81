//! A command-line value with a few choices.

use std::marker::PhantomData;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use throng_base::Said;

/// A choice whose values are described in the output language.
#[derive(Clone)]
pub(crate) struct Choice<T>(PhantomData<T>);

impl<T> Choice<T> {
    pub(crate) fn new() -> Choice<T> {
        Choice(PhantomData)
    }
}

impl<T: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for Choice<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<T, clap::Error> {
        EnumValueParser::<T>::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        Some(Box::new(values.map(|value| match value.get_help() {
            Some(help) => {
                let help = Said::of_others(help.to_string()).spoken();
                value.help(help)
            }
            None => value,
        })))
    }
}
