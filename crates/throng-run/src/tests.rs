//! What a record shows of the command line.

#[test]
fn a_command_line_shows_no_password_whatever_it_is() {
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
