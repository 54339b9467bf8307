-- Sliding windows: the windiest stretches of six hours at each airport, looked at every hour; CSV input with unknown values.
-- Run it: flott run examples/03_sliding_window.sql
CREATE TABLE weather (
  origin      STRING,
  ts          TIMESTAMP(3),
  temperature DOUBLE,
  humidity    DOUBLE,
  wind_dir    INT,
  wind_speed  DOUBLE,
  precip      DOUBLE,
  visibility  DOUBLE,
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/weather.csv',
  'format' = 'csv',
  'csv.null-literal' = ''
);

CREATE VIEW wind AS
SELECT origin, window_start, window_end, MAX(wind_speed) AS gust, MIN(temperature) AS coldest, COUNT(*) AS n
FROM HOP(TABLE weather, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '6' HOURS)
GROUP BY origin, window_start, window_end;

SELECT origin, window_start, window_end, gust, coldest
FROM wind
WHERE gust > 24 AND n = 6;
