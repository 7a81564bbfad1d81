//! The keys of SQL: the step `sql`, and checks of what it returned.

/// The keys of the maps of SQL, behind those of [`super`].
macro_rules! sql_maps {
    ($then:ident $($more:tt)*) => { $then! { $($more)*
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
        column: Map(&Anything) =>
            "Columns of the first row: `{name: ann}`; `column.name: ann` is a short form.",
        sqlstate: TEXTS =>
            "The SQLSTATE: `00000` for success, `23505`, `unique_violation`, or a list of them.",
        time: Text => "The response time: `< 500ms`.",
    }
    } };
}
