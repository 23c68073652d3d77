//! Bodies within the memory that all of them share: the bound holds, and whoever waits for memory is told nothing wrong.
#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

use std::time::Duration;

use fetcher::{FetchConfig, Fetched, Fetcher};
use support::{Reply, config, expect_failure, expect_response, fetcher, response, serve};
use tokio::{
    task::{JoinHandle, JoinSet, yield_now},
    time::{self, Instant, sleep},
};
use types::FailureKind;

const MB: usize = 1_000_000;
const BODY_BYTES: usize = 8 * MB;
const WIRE_BYTES_MAX: usize = 10 * MB;
const READ_TIMEOUT: Duration = Duration::from_mins(1);
const TOTAL_TIMEOUT: Duration = Duration::from_mins(2);

/// A fetcher whose bodies share `bodies_bytes_max`.
fn within(bodies_bytes_max: usize) -> Fetcher {
    fetcher(FetchConfig {
        bodies_bytes_max,
        body_free_bytes: 64 << 10,
        wire_bytes_max: WIRE_BYTES_MAX,
        read_timeout: READ_TIMEOUT,
        total_timeout: TOTAL_TIMEOUT,
        ..config()
    })
}

async fn large() -> support::Server {
    serve(|_, _| Reply::ok("", vec![b'x'; BODY_BYTES])).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_bodies_at_once_keep_to_the_bound_and_come_whole() {
    for bodies_bytes_max in [0, 2 * BODY_BYTES] {
        let server = large().await;
        let fetcher = within(bodies_bytes_max);
        let mut running = JoinSet::new();
        for _ in 0..32 {
            let (client, target) = (fetcher.clone(), server.url("/"));
            running.spawn(async move {
                let Fetched { outcome, hold } = client.fetch(&target).await;
                // What is parsed takes its time, and its memory.
                sleep(Duration::from_millis(10)).await;
                let got = expect_response(Fetched {
                    outcome,
                    hold: None,
                });
                assert_eq!((got.wire_body.len(), got.truncation), (BODY_BYTES, None));
                assert!(got.wire_body.capacity() < BODY_BYTES + (64 << 10));
                drop(hold);
            });
        }
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
        let peak = fetcher.bodies_bytes_peak();
        assert!(
            peak >= BODY_BYTES - (64 << 10) && peak <= bodies_bytes_max + WIRE_BYTES_MAX,
            "{peak} bytes at once, {bodies_bytes_max} are shared"
        );
    }
}

/// A fetcher without shared memory, and the one body that has the reserve.
async fn taken(server: &support::Server) -> (Fetcher, Fetched) {
    let fetcher = within(0);
    let first = fetcher.fetch(&server.url("/")).await;
    assert!(first.hold.is_some());
    (fetcher, first)
}

/// Begins a fetch, and returns when its body waits for memory.
async fn begin_waiting(fetcher: &Fetcher, server: &support::Server) -> JoinHandle<Fetched> {
    let (client, target) = (fetcher.clone(), server.url("/"));
    let waiting = tokio::spawn(async move { client.fetch(&target).await });
    let begun = Instant::now();
    while fetcher.bodies_waiting_count() == 0 {
        assert!(begun.elapsed() < READ_TIMEOUT, "the body does not wait");
        sleep(Duration::from_millis(1)).await;
    }
    waiting
}

/// Lets so much time pass at once, and all timers that have run out by then take effect.
async fn pass(duration: Duration) {
    time::pause();
    time::advance(duration).await;
    for _ in 0..100 {
        yield_now().await;
    }
    time::resume();
}

#[tokio::test]
async fn a_body_that_waits_for_memory_does_not_time_out() {
    let server = large().await;
    let (fetcher, first) = taken(&server).await;
    let waiting = begin_waiting(&fetcher, &server).await;
    pass(2 * TOTAL_TIMEOUT).await;
    assert!(!waiting.is_finished(), "the memory is taken");
    // A short body needs none of it.
    let short = serve(|_, _| Reply::ok("", "x")).await;
    expect_response(fetcher.fetch(&short.url("/")).await);
    drop(first);
    let got = expect_response(waiting.await.unwrap());
    assert_eq!((got.wire_body.len(), got.truncation), (BODY_BYTES, None));
}

#[tokio::test]
async fn a_body_that_was_cut_after_it_waited_is_no_page_but_a_failure() {
    let server = large().await;
    let (fetcher, first) = taken(&server).await;
    let closing = serve(|_, _| {
        let mut reply = response("200 OK", "", &vec![b'x'; 400_000]);
        reply.truncate(200_000);
        Reply::SendAndClose(reply)
    })
    .await;
    let waiting = begin_waiting(&fetcher, &closing).await;
    pass(Duration::from_secs(2)).await;
    drop(first);
    let detail = expect_failure(waiting.await.unwrap(), FailureKind::KeptWaiting);
    assert!(detail.contains("waited for memory"), "{detail}");
}

#[tokio::test]
async fn a_fetch_that_is_given_up_gives_its_memory_back() {
    let server = large().await;
    let (fetcher, first) = taken(&server).await;
    let waiting = begin_waiting(&fetcher, &server).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(fetcher.bodies_waiting_count(), 0);
    drop(first);
    let got = expect_response(fetcher.fetch(&server.url("/")).await);
    assert_eq!(got.wire_body.len(), BODY_BYTES);
}

/// seanmonstar/reqwest#1416: resources that error paths keep.
#[tokio::test]
async fn reqwest_1416_bodies_cut_by_the_peer_give_their_memory_back() {
    let closing = serve(|_, _| {
        let mut reply = response("200 OK", "Content-Encoding: gzip\r\n", &vec![b'x'; 400_000]);
        reply.truncate(300_000);
        Reply::SendAndClose(reply)
    })
    .await;
    let fetcher = within(0);
    for _ in 0..200 {
        let got = expect_response(fetcher.fetch(&closing.url("/")).await);
        assert!(got.truncation.is_some());
    }
    assert!(fetcher.bodies_bytes_peak() <= WIRE_BYTES_MAX);
    let server = large().await;
    let got = expect_response(fetcher.fetch(&server.url("/")).await);
    assert_eq!(got.wire_body.len(), BODY_BYTES);
}
