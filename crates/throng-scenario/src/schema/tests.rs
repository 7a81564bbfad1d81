use super::*;
#[test]
fn dump() { std::fs::write("/tmp/throng.schema.json", json_schema()).unwrap(); }
