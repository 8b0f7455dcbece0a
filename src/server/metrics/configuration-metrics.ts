import { Counter, Gauge, type Registry } from 'prom-client'
import { kinds } from '#config/build/kinds.ts'
import { endpointKind, type FoundObject } from '#config/load/set-aside.ts'

/** Metrics of the configuration and its changes. */
export function createConfigurationMetrics(registry: Registry) {
  const registers = [registry]
  return {
    reloads: new Counter({
      name: 'gatehouse_configuration_reloads_total',
      help: 'Configuration changes, by outcome: applied or refused.',
      labelNames: ['outcome'],
      registers,
    }),
    objects: objectGauge(registry),
    configurationOk: new Gauge({
      name: 'gatehouse_configuration_current',
      help: '1 while the running configuration is the newest one, 0 while a newer one was refused.',
      registers,
    }),
  }
}

/** Counts the objects of the running configuration. */
function objectGauge(registry: Registry): (found: readonly FoundObject[]) => void {
  const gauge = new Gauge({
    name: 'gatehouse_configuration_objects',
    help: 'Objects of the running configuration, by kind and state: served, or set_aside because of an error.',
    labelNames: ['kind', 'state'],
    registers: [registry],
  })
  return (found) => {
    gauge.reset()
    for (const { kind, cause } of found) {
      const known =
        kinds.some((one) => one.kind === kind) || kind === 'values' || kind === endpointKind ? kind : 'other'
      gauge.inc({ kind: known, state: cause === undefined ? 'served' : 'set_aside' })
      gauge.inc({ kind: known, state: cause === undefined ? 'set_aside' : 'served' }, 0)
    }
  }
}
