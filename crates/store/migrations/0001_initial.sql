-- Keys, queue, page records and metadata of one crawl. Runs with the crawl's schema first in the search path.

-- One row: what identifies the crawl, and what the last commit said of it.
CREATE TABLE meta (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    format_version integer NOT NULL,
    crawl_id text NOT NULL,
    key_seed bigint NOT NULL,
    key_version smallint NOT NULL,
    -- Openings so far: a process that lost its lock for a while sees by it whether another has been here.
    epoch bigint NOT NULL DEFAULT 0,
    next_sequence bigint NOT NULL DEFAULT 0,
    progress bytea
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 50, toast.autovacuum_vacuum_scale_factor = 0);

-- Every key ever admitted, and nothing else: the table that suspects are looked up in. The key's first byte is the
-- partition of its host, so it is sorted by partition. Rows are never changed; vacuum still has to visit the new ones,
-- since only then do look-ups read the index alone.
CREATE TABLE url_key (
    key uuid PRIMARY KEY
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);

-- URLs admitted and not finished.
CREATE TABLE queue (
    key uuid NOT NULL,
    sequence bigint NOT NULL,
    depth bigint NOT NULL,
    partition smallint NOT NULL,
    priority smallint NOT NULL,
    via smallint NOT NULL,
    redirect_count smallint NOT NULL,
    host text COLLATE "C" NOT NULL,
    url text COLLATE "C" NOT NULL,
    referrer text COLLATE "C"
) WITH (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_threshold = 50000, autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0);

-- A hostile host can be longer than an index row may be (2,704 bytes), so its beginning is indexed.
CREATE UNIQUE INDEX queue_order ON queue (partition, "left"(host, 300), priority, depth, sequence);

-- Records of finished URLs: JSON text as bytes, since jsonb refuses the escape \u0000 that a page's title may hold,
-- and would make numbers and key order its own. To query: convert_from(record, 'UTF8')::json.
CREATE TABLE page (
    key uuid PRIMARY KEY,
    record bytea NOT NULL
);
