SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.`dateTime`, b.extra,
  a.itemName, a.description, a.initialBid, a.reserve, a.`dateTime` AS dateTime0, a.expires, a.seller, a.category, a.extra AS extra0
FROM bid AS b JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10;
