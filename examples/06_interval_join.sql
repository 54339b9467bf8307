-- Two inputs: flights that left more than three hours late, with the weather that was observed in the hour before their schedule. Both times
-- are event times, so the join forgets what the watermark has passed; it waits a day, since the latest flight left 22 hours after its schedule.
-- Run it: flott run examples/06_interval_join.sql
CREATE TABLE flights (
  scheduled TIMESTAMP(3),
  carrier   STRING,
  flight    INT,
  origin    STRING,
  dest      STRING,
  dep_delay INT,
  WATERMARK FOR scheduled AS scheduled - INTERVAL '1' DAY
) WITH ('connector' = 'filesystem', 'path' = 'data/flights.json', 'format' = 'json');

CREATE TABLE weather (
  origin      STRING,
  observed    TIMESTAMP(3),
  temperature DOUBLE,
  humidity    DOUBLE,
  wind_dir    INT,
  wind_speed  DOUBLE,
  precip      DOUBLE,
  visibility  DOUBLE,
  -- Three airports report at the same time: the first of them does not yet mean that the hour is complete.
  WATERMARK FOR observed AS observed - INTERVAL '1' HOUR
) WITH ('connector' = 'filesystem', 'path' = 'data/weather.csv', 'format' = 'csv', 'csv.null-literal' = '');

SELECT f.scheduled, f.origin, f.dest, f.carrier, f.flight, f.dep_delay, w.wind_speed, w.precip, w.visibility
FROM flights AS f
JOIN weather AS w
  ON f.origin = w.origin AND w.observed > f.scheduled - INTERVAL '1' HOUR AND w.observed <= f.scheduled
WHERE f.dep_delay > 180;
