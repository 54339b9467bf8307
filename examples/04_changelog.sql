-- A query whose result changes: flights and cancellations by airline. Look at the changes themselves with --format changelog.
-- Run it: flott run examples/04_changelog.sql
CREATE TABLE flights (
  departed TIMESTAMP(3),
  carrier  STRING,
  tailnum  STRING,
  distance INT
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/flights.json',
  'format' = 'json'
);

SELECT
  carrier,
  COUNT(*) AS flights,
  COUNT(DISTINCT tailnum) AS planes,
  COUNT(*) FILTER (WHERE departed IS NULL) AS cancelled,
  SUM(distance) AS miles
FROM flights
GROUP BY carrier
HAVING COUNT(*) > 500;
