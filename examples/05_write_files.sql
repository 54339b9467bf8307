-- From files to files, two sinks in one job that reads its source once: a statement set.
-- Run it: flott run examples/05_write_files.sql, then look into target/example-output
CREATE TABLE flights (
  scheduled TIMESTAMP(3),
  carrier   STRING,
  origin    STRING,
  dest      STRING,
  dep_delay INT,
  distance  INT,
  WATERMARK FOR scheduled AS scheduled - INTERVAL '1' DAY
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/flights.json',
  'format' = 'json'
);

CREATE TABLE long_haul (
  origin    STRING,
  dest      STRING,
  scheduled TIMESTAMP(3),
  distance  INT
) PARTITIONED BY (origin) WITH (
  'connector' = 'filesystem',
  'path' = '../target/example-output/long_haul',
  'format' = 'csv'
);

CREATE TABLE daily (
  origin  STRING,
  `day`   STRING,
  flights BIGINT,
  delay   INT
) WITH (
  'connector' = 'filesystem',
  'path' = '../target/example-output/daily',
  'format' = 'json'
);

EXECUTE STATEMENT SET BEGIN
  INSERT INTO long_haul SELECT origin, dest, scheduled, distance FROM flights WHERE distance > 2500;
  INSERT INTO daily
    SELECT origin, DATE_FORMAT(window_start, 'yyyy-MM-dd'), COUNT(*), MAX(dep_delay)
    FROM TUMBLE(TABLE flights, DESCRIPTOR(scheduled), INTERVAL '1' DAY)
    GROUP BY origin, window_start, window_end;
END;
