// A TCP server: to each line "N" it answers "N TOTAL", TOTAL being the sum of that connection's numbers, some of them only
// after a timer and a promise. "quit" ends it. node server.js PORT
"use strict";
const net = require("node:net");
const { setTimeout: pause } = require("node:timers/promises");

let answered = 0;

async function serve(peer) {
  peer.setNoDelay();
  let total = 0;
  let rest = "";
  for await (const bytes of peer) {
    const lines = (rest + bytes).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "quit") {
        process.stdout.write(`answered ${answered} lines\n`, () => process.exit(0));
        return;
      }
      const number = parseInt(line, 10);
      total += number;
      if (number % 50 === 0) await pause(1);
      answered += 1;
      peer.write(`${number} ${total}\n`);
    }
  }
  peer.end();
}

net.createServer(serve).listen(parseInt(process.argv[2], 10), "127.0.0.1");
