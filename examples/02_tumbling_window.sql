-- Event-time windows over real data: how many flights each airport had in every six hours of their schedule, how many of them were cancelled, and
-- the average delay. Flights come in the order in which they left, so a delayed one is out of order by hours: the watermark waits one hour, and
-- what is later than that is counted as late.
-- Run it: flott run examples/02_tumbling_window.sql
CREATE TABLE flights (
  scheduled TIMESTAMP(3),
  departed  TIMESTAMP(3),
  carrier   STRING,
  origin    STRING,
  dep_delay INT,
  distance  INT,
  WATERMARK FOR scheduled AS scheduled - INTERVAL '1' HOUR
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/flights.json',
  'format' = 'json'
);

SELECT
  window_start,
  origin,
  COUNT(*) AS flights,
  COUNT(*) FILTER (WHERE departed IS NULL) AS cancelled,
  AVG(dep_delay) AS average_delay
FROM TABLE(TUMBLE(TABLE flights, DESCRIPTOR(scheduled), INTERVAL '6' HOURS))
WHERE scheduled < TIMESTAMP '2013-01-03 00:00:00'
GROUP BY window_start, window_end, origin;
