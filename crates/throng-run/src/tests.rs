//! Tests that passwords of the command line are masked in the run directory.

#[test]
fn a_recorded_command_line_contains_no_password() {
    let mut secrets = throng_base::Secrets::default();
    secrets.set_words(["admin"].into_iter());
    secrets.learn("vars.password", "hunter");
    for (words, want) in [
        ("--auth admin:admin", "--auth admin:***"),
        ("-u admin:a:b http://h:1/", "-u admin:*** http://h:1/"),
        ("-uann:pw", "-uann:***"),
        ("--user=ann:pw", "--user=ann:***"),
        ("--proxy-user ann:pw", "--proxy-user ann:***"),
        ("-a ann: -c 5", "-a ann: -c 5"),
        ("-u http://ann:pw@h:1/", "-u http://ann:***@h:1/"),
        ("-u http://h:1/", "-u http://h:1/"),
        ("--cert a:b.pem:pw", "--cert a:b.pem:***"),
        ("-Ec.pem:pw", "-Ec.pem:***"),
        ("--set password=admin --set=token=x", "--set password=*** --set=token=***"),
        ("--set user=admin /hunter", "--set user=admin /***"),
    ] {
        let words: Vec<String> = words.split(' ').map(str::to_string).collect();
        assert_eq!(super::masked_command(&secrets, &words).join(" "), want);
    }
}
