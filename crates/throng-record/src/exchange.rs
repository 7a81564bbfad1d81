//! A request and its response while they are forwarded. It is recorded when both have ended, or
//! with the data so far if they are interrupted.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use throng_base::Time;

use crate::entry::Entry;
use crate::har::Har;

/// See the module's description.
pub(crate) struct Exchange {
    har: Arc<Har>,
    begin: Time,
    entry: Mutex<Entry>,
}

impl Exchange {
    pub(crate) fn new(har: &Arc<Har>, begin: Time, entry: Entry) -> Arc<Exchange> {
        Arc::new(Exchange { har: Arc::clone(har), begin, entry: Mutex::new(entry) })
    }

    pub(crate) fn entry(&self) -> MutexGuard<'_, Entry> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self) -> Time {
        self.begin
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let took = self.har.now() - self.begin;
        let entry = self.entry.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.har.write(entry, took);
    }
}

/// Which body of an exchange.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Sent,
    Received,
}

/// A forwarded body; its data is recorded.
pub(crate) struct Passing {
    content: Content,
    exchange: Option<(Arc<Exchange>, Way)>,
}

enum Content {
    Stream(Incoming),
    Whole(Option<Bytes>),
}

impl Passing {
    pub(crate) fn new(body: Incoming, exchange: Option<Arc<Exchange>>, way: Way) -> Passing {
        let exchange = exchange.map(|exchange| (exchange, way));
        Passing { content: Content::Stream(body), exchange }
    }

    pub(crate) fn text(text: impl Into<Bytes>) -> Passing {
        Passing { content: Content::Whole(Some(text.into())), exchange: None }
    }

    pub(crate) fn empty() -> Passing {
        Passing { content: Content::Whole(None), exchange: None }
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let own = self.get_mut();
        let frame = match &mut own.content {
            Content::Whole(body) => return Poll::Ready(body.take().map(|it| Ok(Frame::data(it)))),
            Content::Stream(body) => ready!(Pin::new(body).poll_frame(context)),
        };
        match (&frame, &own.exchange) {
            (Some(Ok(frame)), Some((exchange, way))) => {
                let (mut entry, data) = (exchange.entry(), frame.data_ref());
                let captured = match way {
                    Way::Sent => Some(&mut entry.sent),
                    Way::Received => entry.response.as_mut().map(|response| &mut response.received),
                };
                if let (Some(captured), Some(data)) = (captured, data) {
                    captured.push(data);
                }
            }
            (Some(Err(error)), Some((exchange, _))) => {
                exchange.entry().error = Some(error.to_string());
                own.exchange = None;
            }
            (None, _) => own.exchange = None,
            (_, None) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Stream(body) => body.is_end_stream(),
            Content::Whole(body) => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Stream(body) => body.size_hint(),
            Content::Whole(body) => {
                SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64)
            }
        }
    }
}
