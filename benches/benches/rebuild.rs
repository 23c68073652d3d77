//! Rebuilds the seen test of a crawl from its store, and loads it from a snapshot: what a start costs either way.
//!
//! `cargo bench -p benches --bench rebuild -- --keys 50M --store postgres` (or `embedded`). The store is made for the
//! run, in the temporary folder of the system, and removed afterwards: 50 million keys take 3 GB with `PostgreSQL` and
//! 1.2 GB embedded. Processor seconds are those of this process and, with `PostgreSQL`, of all processes of the server.

use std::{
    error::Error,
    fs::{self, File},
    io::{BufReader, BufWriter, Write as _},
    path::Path,
    pin::pin,
    time::Instant,
};

use benches::measure::{Count, key, line, option};
use bytes::Bytes;
use filter::{GrowingFilter, GrowthConfig};
use futures_util::SinkExt as _;
use rustix::time::{ClockId, clock_gettime};
use store::{CrawlIdentity, OpenedStore, testing::Cluster};
use tokio_postgres::NoTls;
use types::{KEY_VERSION, UrlKey};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The schema of the crawl.
const SCHEMA: &str = "bloomcrawl";
/// The target false-positive rate.
const RATE: f64 = 0.01;
/// Loads of the snapshot, of which the fastest counts: the first also pays for memory that the system hands out anew.
const LOADS: usize = 3;
/// How much faster than a rebuild a load has to be.
const RATIO_MIN: f64 = 20.0;
/// Keys sent to the server in one piece, in bytes.
const COPY_BYTES: usize = 1 << 18;

fn main() -> Outcome<()> {
    let Count(keys) = option("keys", Count(50_000_000), "a number of keys such as 50M");
    let backend = option("store", "postgres".to_owned(), "postgres or embedded");
    let folder = tempfile::tempdir()?;
    let place = match backend.as_str() {
        "postgres" => Place::postgres()?,
        "embedded" => Place::Embedded,
        _ => return Err(format!("--store {backend}: give postgres or embedded").into()),
    };
    let began = Instant::now();
    place.fill(folder.path(), keys)?;
    line(format_args!(
        "{backend}: {} keys written in {:.0} s",
        Count(keys),
        began.elapsed().as_secs_f64()
    ));
    let rebuilt = rebuild(&place, folder.path(), keys)?;
    snapshot(folder.path(), &rebuilt)
}

/// The filter as rebuilt, and the processor seconds that this took.
struct Rebuilt {
    filter: GrowingFilter,
    wall: f64,
    used: f64,
}

/// Opens the store and reads all its keys into a new filter, by the calls with which a crawl starts. The filter is one
/// for just that many keys, so that its size is what the title says; a crawl that goes on makes one for twice as many.
fn rebuild(place: &Place, folder: &Path, keys: u64) -> Outcome<Rebuilt> {
    let (client, server, began) = (client_seconds(), place.server_seconds()?, Instant::now());
    let opened = place.open(folder)?;
    let filter = GrowingFilter::new(&GrowthConfig {
        expected_count: keys,
        rate: RATE,
        // A filter for that many keys has just the right size, and would begin to grow before the last of them.
        grows: false,
        ..GrowthConfig::default()
    })?;
    let mut numbers = Vec::new();
    let count = opened.store.scan_keys(&mut |keys| {
        numbers.clear();
        numbers.extend(keys.iter().map(|key| key.as_u128()));
        filter.enter(&numbers);
    })?;
    drop(opened);
    let wall = began.elapsed().as_secs_f64();
    let client = client_seconds() - client;
    let server = place.server_seconds()? - server;
    if count != keys {
        return Err(format!("{count} keys were read, {keys} are stored").into());
    }
    let used = client + server;
    line(format_args!(
        "rebuild   {wall:.1} s; {used:.1} CPU-s ({client:.1} client, {server:.1} server), {:.2} a million keys",
        used * 1e6 / float(keys),
    ));
    Ok(Rebuilt { filter, wall, used })
}

/// Saves the filter as a crawl does at its end, loads it again, and compares that with the rebuild.
fn snapshot(folder: &Path, rebuilt: &Rebuilt) -> Outcome<()> {
    let path = folder.join("filter.snapshot");
    let began = Instant::now();
    let mut file = BufWriter::new(File::create(&path)?);
    rebuilt.filter.save(b"rebuild", &mut file)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    let saved = began.elapsed().as_secs_f64();
    let bytes = fs::metadata(&path)?.len();
    let (mut wall, mut used) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..LOADS {
        let (client, began) = (client_seconds(), Instant::now());
        let (_, filter) = GrowingFilter::load(&mut BufReader::new(File::open(&path)?))?;
        wall = wall.min(began.elapsed().as_secs_f64());
        used = used.min(client_seconds() - client);
        if filter.stats().item_count != rebuilt.filter.stats().item_count {
            return Err("the loaded filter is not the saved one".into());
        }
    }
    line(format_args!(
        "snapshot  {bytes} bytes; saved with fsync in {saved:.2} s; loaded and verified in {wall:.3} s, {used:.3} CPU-s \
         (best of {LOADS})"
    ));
    let (by_wall, by_use) = (rebuilt.wall / wall, rebuilt.used / used);
    line(format_args!(
        "load      {by_wall:.0} times faster than the rebuild, for {by_use:.0} times fewer CPU-s (demanded: {RATIO_MIN:.0})"
    ));
    if by_wall < RATIO_MIN || by_use < RATIO_MIN {
        return Err(format!("loading is not {RATIO_MIN} times faster than the rebuild").into());
    }
    Ok(())
}

/// Where the store is.
enum Place {
    Embedded,
    Postgres {
        uri: String,
        postmaster: i64,
        /// Ends with the value.
        _cluster: Cluster,
    },
}

impl Place {
    fn postgres() -> Outcome<Self> {
        let cluster = Cluster::start()?;
        let uri = cluster.create_database();
        // A process that lives as long as the server does, and is a child of its first one.
        let child = Cluster::query_i64(
            &uri,
            "SELECT pid::bigint FROM pg_stat_activity WHERE backend_type = 'checkpointer'",
        );
        let postmaster = Process::read(child).ok_or("the server's processes cannot be read")?;
        Ok(Self::Postgres {
            postmaster: postmaster.parent,
            uri,
            _cluster: cluster,
        })
    }

    fn open(&self, folder: &Path) -> Outcome<OpenedStore> {
        let offered = identity();
        Ok(match self {
            Self::Embedded => store::embedded::open(&folder.join("store"), &offered)?,
            Self::Postgres { uri, .. } => store::postgres::open(uri, SCHEMA, &offered)?,
        })
    }

    /// Writes keys in random order, as a crawl does, where the order can matter to the reading.
    fn fill(&self, folder: &Path, keys: u64) -> Outcome<()> {
        match self {
            Self::Embedded => {
                let mut sorted: Vec<u128> = (0..keys).map(key).collect();
                sorted.sort_unstable();
                let sorted = sorted.into_iter().map(UrlKey::from_u128);
                store::embedded::create_with_keys(&folder.join("store"), &identity(), sorted)?;
            }
            Self::Postgres { uri, .. } => {
                drop(self.open(folder)?);
                // Reading all keys takes the table alone, so its index, by far the dearer to write, is left out.
                Cluster::execute(
                    uri,
                    "ALTER TABLE bloomcrawl.url_key DROP CONSTRAINT url_key_pkey",
                );
                tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?
                    .block_on(copy_in(uri, keys))?;
                // What autovacuum has done to all but the newest keys of a crawl.
                Cluster::execute(uri, "VACUUM bloomcrawl.url_key");
            }
        }
        Ok(())
    }

    /// Returns the processor seconds that the server's processes, those that ended included, have used so far.
    fn server_seconds(&self) -> Outcome<f64> {
        let Self::Postgres { postmaster, .. } = self else {
            return Ok(0.0);
        };
        let mut seconds = 0.0;
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let process = (name.to_str())
                .and_then(|name| name.parse().ok())
                .and_then(Process::read);
            if let Some(process) = process {
                if process.id == *postmaster {
                    seconds += process.own_seconds + process.ended_children_seconds;
                } else if process.parent == *postmaster {
                    seconds += process.own_seconds;
                }
            }
        }
        Ok(seconds)
    }
}

async fn copy_in(uri: &str, keys: u64) -> Outcome<()> {
    let (client, connection) = tokio_postgres::connect(uri, NoTls).await?;
    tokio::spawn(connection);
    let sink = client
        .copy_in::<_, Bytes>("COPY bloomcrawl.url_key (key) FROM STDIN (FORMAT binary)")
        .await?;
    let mut sink = pin!(sink);
    let mut piece = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for number in 0..keys {
        piece.extend_from_slice(&[0, 1, 0, 0, 0, 16]);
        piece.extend_from_slice(&key(number).to_be_bytes());
        if piece.len() >= COPY_BYTES {
            sink.send(Bytes::from(std::mem::take(&mut piece))).await?;
        }
    }
    piece.extend_from_slice(&[0xff, 0xff]);
    sink.send(Bytes::from(piece)).await?;
    sink.finish().await?;
    Ok(())
}

fn identity() -> CrawlIdentity {
    CrawlIdentity {
        crawl_id: "0".repeat(32),
        key_seed: 1,
        key_version: KEY_VERSION,
    }
}

/// What the system says of a process.
struct Process {
    id: i64,
    parent: i64,
    own_seconds: f64,
    ended_children_seconds: f64,
}

impl Process {
    /// Reads `/proc/ID/stat` (see proc(5)); `None` if there is no such process any more.
    fn read(id: i64) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let (_, after_name) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        // The third field of the line is the first here. Times are in hundredths of a second.
        let seconds = |field: usize| Some(fields.get(field - 3)?.parse::<f64>().ok()? / 100.0);
        Some(Self {
            id,
            parent: fields.get(1)?.parse().ok()?,
            own_seconds: seconds(14)? + seconds(15)?,
            ended_children_seconds: seconds(16)? + seconds(17)?,
        })
    }
}

/// Returns the processor seconds that this process, all its threads, has used so far.
fn client_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    float(time.tv_sec.unsigned_abs()) + float(time.tv_nsec.unsigned_abs()) / 1e9
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and times here are far below 2^53"
)]
const fn float(number: u64) -> f64 {
    number as f64
}
