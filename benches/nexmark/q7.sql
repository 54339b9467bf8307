SELECT b.auction, b.price, b.bidder, b.`dateTime`, b.extra
FROM bid AS b
JOIN (
  SELECT MAX(price) AS most, window_end AS ended
  FROM TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)
  GROUP BY window_start, window_end
) AS highest
ON b.price = highest.most
WHERE b.`dateTime` BETWEEN highest.ended - INTERVAL '10' SECOND AND highest.ended;
