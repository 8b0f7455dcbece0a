import { Counter, Gauge, type Registry } from 'prom-client'

/** Metrics of the supervisor about its workers. */
export function createWorkerMetrics(registry: Registry) {
  const registers = [registry]
  const workers = new Gauge({
    name: 'gatehouse_workers',
    help: 'Workers of this gateway, by state: ready, starting, or restarting after an exit.',
    labelNames: ['state'],
    registers,
  })
  const exits = new Counter({
    name: 'gatehouse_worker_exits_total',
    help: 'Workers that ended and were replaced, by number of the worker.',
    labelNames: ['worker'],
    registers,
  })
  return { workers, exits }
}
