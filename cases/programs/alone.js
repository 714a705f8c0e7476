// An event loop of Node.js that talks to nobody: times, work of the pool of threads, files, messages between threads.
"use strict";
const fs = require("fs");
const crypto = require("crypto");
const { promisify } = require("util");
const { MessageChannel } = require("worker_threads");

const rounds = Number(process.argv[2]);
const tell = (text) => fs.writeSync(1, text + "\n");
const sleep = promisify(setTimeout);
const derive = promisify(crypto.pbkdf2);

async function main() {
  const { port1, port2 } = new MessageChannel();
  for (let n = 0; n < rounds; n++) {
    await sleep(1);
    const key = await derive("word", String(n), 10, 8, "sha256");
    tell(`${n} ${key.toString("hex")}`);
    await fs.promises.writeFile("note", String(n));
    const read = await Promise.all([fs.promises.readFile("note", "utf8"), sleep(1, "slept")]);
    tell(read.join(" "));
    const heard = new Promise((done) => port2.once("message", done));
    port1.postMessage(n);
    tell(`heard ${await heard}`);
    await new Promise((done) => setImmediate(done));
  }
  port1.close();
  tell("end");
}

main();
