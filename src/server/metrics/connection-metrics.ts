import { Counter, Gauge, type Registry } from 'prom-client'
import type { ConnectionMeter } from '#requests/listener/connections.ts'

/** Metrics of the connections of listeners. */
export function createConnectionMetrics(registry: Registry): ConnectionMeter {
  const registers = [registry]
  const open = new Gauge({
    name: 'gatehouse_connections_open',
    help: 'Open connections, by listener: public, operations or webhook.',
    labelNames: ['listener'],
    registers,
  })
  const refused = new Counter({
    name: 'gatehouse_connections_refused_total',
    help: 'Connections that a limit or their input closed, by listener and reason: total, address, timeout, malformed or pipelined.',
    labelNames: ['listener', 'reason'],
    registers,
  })
  return {
    opened: (listener) => open.inc({ listener }),
    closed: (listener) => open.dec({ listener }),
    refused: (listener, reason) => refused.inc({ listener, reason }),
  }
}
