-- The three latest departures of each airport, as they stand: a ranking that changes while flights come in, joined with the airlines' names.
-- Run it: flott run examples/07_top_n.sql, and see each change with --format changelog
CREATE TABLE flights (
  scheduled TIMESTAMP(3),
  carrier   STRING,
  flight    INT,
  origin    STRING,
  dest      STRING,
  dep_delay INT
) WITH ('connector' = 'filesystem', 'path' = 'data/flights.json', 'format' = 'json');

CREATE TABLE airlines (
  carrier STRING,
  name    STRING
) WITH ('connector' = 'filesystem', 'path' = 'data/airlines.csv', 'format' = 'csv');

SELECT r.origin, r.place, r.dep_delay, a.name, r.flight, r.dest, r.scheduled
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY dep_delay DESC NULLS LAST) AS place
  FROM flights
) AS r
JOIN airlines AS a ON r.carrier = a.carrier
WHERE r.place <= 3;
