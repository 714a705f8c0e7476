// Timers, promises, a thread pool and worker threads, in an order that is the same in every run: node timers.js ROUNDS
"use strict";
const { pbkdf2 } = require("node:crypto");
const { promisify } = require("node:util");
const { Worker, isMainThread, parentPort } = require("node:worker_threads");
const { setTimeout: pause, setInterval: every } = require("node:timers/promises");

// Objects that soon are garbage.
function churn(round) {
  const kept = new Map();
  for (let i = 0; i < 3000; i++) kept.set(`key ${i % 500}`, { round, i, text: "x".repeat(i % 50) });
  return [...kept.values()].reduce((sum, { i, text }) => sum + i * text.length, 0);
}

async function main(rounds) {
  const worker = new Worker(__filename);
  const ask = (round) => new Promise((answer) => {
    worker.once("message", answer);
    worker.postMessage(round);
  });
  let ticks = 0;
  for await (const _ of every(1)) {
    const round = ticks++;
    await Promise.all([pause(1), pause(2)]);
    const key = await promisify(pbkdf2)(`secret ${round}`, "salt", 100, 8, "sha256");
    console.log(round, churn(round), key.toString("hex"), await ask(round));
    if (ticks === rounds) break;
  }
  await worker.terminate();
  console.log("end", ticks);
}

if (isMainThread) main(parseInt(process.argv[2], 10));
else parentPort.on("message", (round) => parentPort.postMessage(churn(round)));
