// The clocks of hosting/measurement.py and the workloads of hosting/asynchronous.py, for hosts that run on Node.
'use strict';

const fs = require('node:fs');

const MESSAGE_TEXT =
  'The quick brown fox jumps over the lazy dog, and then it does all of that again while nobody looks. ';
const EVENT_TEXT = 'twenty bytes of text';
const TICK = 100; // per second, in /proc/stat

const now = () => Number(process.hrtime.bigint()) / 1e9;
const cpu = () => {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6;
};
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

function busySeconds() {
  try {
    const [user, nice, system, , , irq, softirq, steal] = fs
      .readFileSync('/proc/stat', 'ascii').split('\n', 1)[0].split(/ +/).slice(1, 9).map(Number);
    return (user + nice + system + irq + softirq + steal) / TICK;
  } catch {
    return 0;
  }
}

function waitedSeconds(pid) {
  try {
    return fs.readdirSync(`/proc/${pid}/task`)
      .map((thread) => Number(fs.readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'ascii').split(' ')[1]))
      .reduce((a, b) => a + b, 0) / 1e9;
  } catch {
    return 0;
  }
}

function statusField(pid, field) {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/status`, 'ascii').match(new RegExp(`^${field}:\\s+(\\d+)`, 'm'))[1]);
  } catch {
    return 0;
  }
}

class Window {
  constructor(child) {
    this.pids = child ? ['self', child.pid] : ['self'];
    this.childBefore = child ? child.cpu : 0;
    this.waited = -this.pids.map(waitedSeconds).reduce((a, b) => a + b);
    this.busy = -busySeconds();
    this.hostCpu = -cpu();
    this.seconds = -now();
  }

  close() {
    this.seconds += now();
    this.hostCpu += cpu();
    this.busy += busySeconds();
    this.waited += this.pids.map(waitedSeconds).reduce((a, b) => a + b);
  }

  figures(operations, childCpu) {
    const childUsed = childCpu - this.childBefore;
    return {
      host_cpu_us: (this.hostCpu / operations) * 1e6,
      child_cpu_us: (childUsed / operations) * 1e6,
      cpu_us: ((this.hostCpu + childUsed) / operations) * 1e6,
      foreign: Math.max(0, this.busy - this.hostCpu - childUsed) / this.seconds,
      waited: this.waited / this.seconds,
      seconds: this.seconds,
    };
  }
}

function check(holds, complaint) {
  if (!holds) throw new Error(complaint);
}

async function checkCount(subject, events) {
  const total = await subject.count(events, EVENT_TEXT);
  check(total === (events * (events - 1)) / 2, 'events were lost or repeated');
}

// A subject has: handshake(), echo(text), count(events, text), drive(calls, text), usage(), close().

async function oneAfterAnother(connect, settings) {
  const subject = await connect(settings.child);
  await subject.handshake();
  check((await subject.echo(MESSAGE_TEXT)).text === MESSAGE_TEXT, 'the echo is not what was sent');
  for (let i = 0; i < settings.warmup; i++) await subject.echo(MESSAGE_TEXT);
  const took = [];
  const window = new Window(await subject.usage());
  for (let i = 0; i < settings.calls; i++) {
    const began = process.hrtime.bigint();
    await subject.echo(MESSAGE_TEXT);
    took.push(Number(process.hrtime.bigint() - began));
  }
  window.close();
  took.sort((a, b) => a - b);
  return [subject, {
    calls_s: settings.calls / window.seconds,
    p50_us: took[took.length >> 1] / 1e3,
    p99_us: took[Math.floor((took.length * 99) / 100)] / 1e3,
    ...window.figures(settings.calls, (await subject.usage()).cpu),
  }];
}

async function manyInFlight(connect, settings) {
  const subject = await connect(settings.child);
  await subject.handshake();
  const makeCalls = async (calls) => {
    const each = Math.max(Math.floor(calls / settings.in_flight), 1);
    const caller = async () => {
      for (let i = 0; i < each; i++) await subject.echo(MESSAGE_TEXT);
    };
    await Promise.all(Array.from({ length: settings.in_flight }, caller));
    return each * settings.in_flight;
  };
  await makeCalls(settings.warmup);
  const window = new Window(await subject.usage());
  const calls = await makeCalls(settings.calls);
  window.close();
  return [subject, { calls_s: calls / window.seconds, ...window.figures(calls, (await subject.usage()).cpu) }];
}

async function events(connect, settings) {
  const subject = await connect(settings.child);
  await subject.handshake();
  await checkCount(subject, settings.warmup);
  const window = new Window(await subject.usage());
  for (let i = 0; i < settings.repeats; i++) await checkCount(subject, settings.events);
  window.close();
  const total = settings.events * settings.repeats;
  return [subject, { events_s: total / window.seconds, ...window.figures(total, (await subject.usage()).cpu) }];
}

async function largePayload(connect, settings) {
  const subject = await connect(settings.child);
  await subject.handshake();
  const text = 'x'.repeat(settings.payload);
  check((await subject.echo(text)).text === text, 'the echo is not what was sent');
  for (let i = 0; i < settings.warmup; i++) await subject.echo(text);
  const window = new Window(await subject.usage());
  for (let i = 0; i < settings.calls; i++) await subject.echo(text);
  window.close();
  return [subject, {
    mib_s: (settings.calls * settings.payload) / 2 ** 20 / window.seconds,
    ...window.figures(settings.calls, (await subject.usage()).cpu),
  }];
}

async function callsBack(connect, settings) {
  const subject = await connect(settings.child);
  await subject.handshake();
  await subject.drive(settings.warmup, MESSAGE_TEXT);
  const window = new Window(await subject.usage());
  await subject.drive(settings.calls, MESSAGE_TEXT);
  window.close();
  return [subject, {
    calls_s: settings.calls / window.seconds,
    ...window.figures(settings.calls, (await subject.usage()).cpu),
  }];
}

async function start(connect, settings) {
  const took = [];
  const resident = [];
  let childCpu = 0;
  const window = new Window();
  for (let i = 0; i < settings.starts; i++) {
    const began = now();
    const subject = await connect(settings.child);
    await subject.handshake();
    took.push((now() - began) * 1e3);
    const usage = await subject.usage();
    resident.push(statusField(usage.pid, 'VmRSS') / 1024);
    childCpu += usage.cpu;
    await subject.close();
  }
  window.close();
  return [null, {
    start_ms: median(took), rss_mib: median(resident), ...window.figures(settings.starts, childCpu),
  }];
}

async function manyChildren(connect, settings) {
  const residentBefore = statusField('self', 'VmRSS');
  const window = new Window();
  const subjects = await Promise.all(Array.from({ length: settings.children }, async () => {
    const subject = await connect(settings.child);
    await subject.handshake();
    await subject.echo(MESSAGE_TEXT);
    return subject;
  }));
  window.close();
  const hostKib = (statusField('self', 'VmRSS') - residentBefore) / settings.children;
  const threads = statusField('self', 'Threads');
  let childCpu = 0;
  for (const subject of subjects) childCpu += (await subject.usage()).cpu;
  const began = now();
  for (let i = 0; i < settings.laps; i++) for (const subject of subjects) await subject.echo(MESSAGE_TEXT);
  const lapCall = ((now() - began) / (settings.laps * settings.children)) * 1e6;
  await Promise.all(subjects.map((subject) => subject.close()));
  return [null, {
    start_s: window.seconds, threads, host_kib_child: hostKib, lap_call_us: lapCall,
    ...window.figures(settings.children, childCpu),
  }];
}

const WORKLOADS = {
  W1: oneAfterAnother, W2: manyInFlight, W3: events, W4: largePayload, W5: callsBack, W6: start, W7: manyChildren,
};

async function runHost(connect) {
  const settings = JSON.parse(process.argv[2]);
  const [subject, figures] = await WORKLOADS[settings.workload](connect, settings);
  if (subject) await subject.close();
  console.log(JSON.stringify(figures));
}

module.exports = { runHost };
