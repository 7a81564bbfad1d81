//! The size of a user, of which there may be a million.

use super::*;

#[test]
fn a_user_is_small() {
    assert!(size_of::<User>() <= 400, "{}", size_of::<User>());
    assert!(size_of::<Connection>() <= 160, "{}", size_of::<Connection>());
}
