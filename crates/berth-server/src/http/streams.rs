//! Streams end with the right they were opened by.

use berth_api::{Code, Problem};
use berth_service::StreamRight;
use futures_util::{Stream, StreamExt, stream};

/// The items of a stream for as long as its right is there, and then a last one that says why it
/// ends. What is on its way by then is not sent any more.
pub fn while_allowed<S: Stream + Send + 'static>(
    items: S,
    right: StreamRight,
    farewell: impl FnOnce(Box<Problem>) -> S::Item + Send + 'static,
) -> impl Stream<Item = S::Item> + Send
where
    S::Item: Send,
{
    let open = Some((Box::pin(items), right, farewell));
    stream::unfold(open, async |open| {
        let (mut items, mut right, farewell) = open?;
        tokio::select! {
            biased;
            problem = right.lost() => {
                if problem.known_code() == Some(Code::NotReady) {
                    // The connection is cut in a moment. A client that follows then comes back,
                    // and would take a last item for the end of what it follows.
                    std::future::pending::<()>().await;
                }
                Some((farewell(problem), None))
            }
            item = items.next() => item.map(|item| (item, Some((items, right, farewell)))),
        }
    })
}
