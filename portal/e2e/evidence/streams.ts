// What 200 people cost who have the portal open.

import { listen } from "../support/events";
import { atMost, cpuSeconds, exactly, figure, type Section } from "../support/report";
import { type Server, submit } from "../support/server";

const STREAMS = 200;
const RATE = 10;
const SECONDS = 30;

export async function streams(server: Server): Promise<Section> {
  const job = await submit(server, 'name: changes\nhold: true\nrun: "true"\n');
  let received = 0;
  const stops = await Promise.all(
    Array.from({ length: STREAMS }, () =>
      listen(server, (event) => event.includes('"kind":"job"') && received++),
    ),
  );
  const change = (number: number) =>
    server.api("PATCH", `/v1/jobs/${job}`, { priority: number % 2 ? "low" : "normal" });
  await pace(2 * RATE, change);
  await settle(() => received);
  // The same changes with nobody listening are no cost of the streams.
  received = 0;
  const before = cpuSeconds(server.process);
  const sent = SECONDS * RATE;
  await pace(sent, change);
  await settle(() => received);
  const listening = cpuSeconds(server.process) - before;
  const events = received;
  for (const stop of stops) stop();
  await new Promise((done) => setTimeout(done, 2_000));
  const quiet = cpuSeconds(server.process);
  await pace(sent, change);
  await new Promise((done) => setTimeout(done, 1_000));
  const alone = cpuSeconds(server.process) - quiet;
  return {
    title: "People who have the portal open",
    text: `${STREAMS} event streams are open while a job is changed ${RATE} times a second for ${SECONDS} seconds, over the API. Then the same changes come while nobody listens. The difference of the CPU time of the server is what the streams cost.`,
    rows: [
      exactly("events that were missed", STREAMS * sent - events, "events", 0),
      figure("CPU with the streams", (100 * listening) / SECONDS, "% of a core"),
      figure("CPU without them", (100 * alone) / SECONDS, "% of a core"),
      atMost(
        `${STREAMS} streams at ${RATE} events a second`,
        (100 * (listening - alone)) / SECONDS,
        "% of a core",
        10,
      ),
    ],
  };
}

async function pace(count: number, act: (number: number) => Promise<unknown>): Promise<void> {
  const begin = Date.now();
  for (let number = 0; number < count; number++) {
    const due = begin + (1000 * number) / RATE;
    if (due > Date.now()) await new Promise((done) => setTimeout(done, due - Date.now()));
    await act(number);
  }
}

/** Waits until nothing comes any more. */
async function settle(count: () => number): Promise<void> {
  for (let last = -1; last !== count(); ) {
    last = count();
    await new Promise((done) => setTimeout(done, 500));
  }
}
