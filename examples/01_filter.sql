-- Flights that left on time and yet arrived more than 50 minutes late.
-- Run it: flott run examples/01_filter.sql
CREATE TABLE flights (
  scheduled TIMESTAMP(3),
  departed  TIMESTAMP(3),
  carrier   STRING,
  flight    INT,
  tailnum   STRING,
  origin    STRING,
  dest      STRING,
  dep_delay INT,
  arr_delay INT,
  air_time  INT,
  distance  INT
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/flights.json',
  'format' = 'json'
);

SELECT scheduled, carrier, flight, origin, dest, arr_delay
FROM flights
WHERE dep_delay <= 0 AND arr_delay > 50;
