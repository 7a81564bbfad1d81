// A SockJS server that repeats what it receives, and prints it. Its port is printed first.
const { createServer } = require('http');
const sockjs = require('sockjs');

const echo = sockjs.createServer({ log: () => {} });
echo.on('connection', (connection) => {
  console.log('connected');
  connection.on('data', (text) => { console.log('data'); connection.write(text); });
});
const http = createServer();
echo.installHandlers(http, { prefix: '/echo' });
http.listen(0, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
