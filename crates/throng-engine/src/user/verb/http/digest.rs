//! Digest authentication (RFC 7616): a challenge is answered once per step by the same request with
//! credentials; every later request of the user sends them without a challenge.

use throng_program::{DigestAuth, Text};
use throng_protocol::http1::digest::{Answerer, Challenge};
use throng_protocol::http1::write_header;

use super::Request;
use crate::failure::Finding;
use crate::scope::scope;
use crate::user::exchange::Exchange;
use crate::user::redirect::{Redirect, path_of};

impl Request<'_> {
    /// Prepares the request that answers a challenge; the same instruction runs again. False if
    /// this step has answered one already, or the target is not that of the step: then the 401 is
    /// the response.
    pub(super) fn answer_challenge(
        &mut self,
        exchange: &Exchange,
        challenge: Challenge,
    ) -> Result<bool, Finding> {
        let http = self.http;
        let Some(digest) = http.digest.as_deref() else { return Ok(false) };
        let target = self.goes_to();
        let followed = self.task.redirect().filter(|redirect| redirect.is_followed());
        let own = self.user.lines.get(self.task.line).target;
        if followed.is_some_and(|redirect| redirect.challenged || target != own) {
            return Ok(false);
        }
        let (user, password) = self.credentials(digest)?;
        let random = u128::from(self.user.random.next_u64()) << 64;
        let random = random | u128::from(self.user.random.next_u64());
        let answerer = Answerer::new(challenge, &user, &password, random);
        self.user.memory().keep_answerer(target, answerer);
        let path = path_of(http, self.task.redirect(), exchange).into_owned();
        let written = exchange.rare.as_ref().and_then(|rare| rare.before.clone());
        let again = match self.task.redirect().cloned() {
            Some(redirect) => Redirect { path, ..redirect },
            None => Redirect::to(target, path),
        };
        let before = if again.is_followed() { again.before.clone() } else { written };
        let (bytes_in, bytes_out) = again.bytes;
        let bytes = (bytes_in + exchange.bytes_in, bytes_out + exchange.bytes_out);
        let redirect = Redirect { bytes, before, sent: exchange.sent, challenged: true, ..again };
        self.task.detour.get_or_insert_default().redirect = Some(redirect);
        Ok(true)
    }

    /// Adds the credentials to a written request, if the target has challenged this user before.
    pub(super) fn authorize(
        &mut self,
        digest: &DigestAuth,
        target: u16,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Result<(), Finding> {
        if self.user.memory().answerer(target).is_none() {
            return Ok(());
        }
        let (user, password) = self.credentials(digest)?;
        let answerer = self.user.memory().answerer(target);
        let Some(answerer) = answerer.filter(|one| one.is_of(&user, &password)) else {
            return Ok(());
        };
        // As in the request line.
        let mut words = out.split(|byte| *byte == b' ');
        let (method, uri) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let value = answerer.next(method, uri);
        insert_authorization(out, &value);
        exchange.rare(self.shard).authorization = value;
        Ok(())
    }

    /// User name and password of this user.
    fn credentials(&mut self, digest: &DigestAuth) -> Result<(String, String), Finding> {
        // Random values are drawn here again for every request.
        let mut random = self.user.random.clone();
        let mut scope = scope!(self.user, self.shard, &mut random);
        let mut rendered = |text: &Text| {
            let mut out = Vec::new();
            scope.render(text, &mut out)?;
            Ok(String::from_utf8_lossy(&out).into_owned())
        };
        Ok((rendered(&digest.user)?, rendered(&digest.password)?))
    }
}

/// Appends the header to the others of a request.
pub(super) fn insert_authorization(request: &mut Vec<u8>, value: &[u8]) {
    let Some(end) = memchr::memmem::find(request, b"\r\n\r\n") else { return };
    let mut header = Vec::with_capacity(value.len() + 32);
    write_header(&mut header, "Authorization", value);
    request.splice(end + 2..end + 2, header);
}
