import { silentLogger } from '#kernel/logger.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import { errorBody, scimMediaType } from '#protocols/scim/scim-error.ts'
import { defineFilter } from '#sdk/filter.ts'
import type { ModuleHost } from '#sdk/host.ts'
import { announced } from './announced.ts'
import { AttributeMarks, type DeletedMarks, StoredMarks } from './deleted-marks.ts'
import { DirectoryLookups } from './directory-lookups.ts'
import { type GatewayConfig, gatewayFlow, parseGatewayConfig, summarize } from './gateway-config.ts'
import { GroupView } from './group-view.ts'
import { journaled } from './journaled.ts'
import { KeyedLock } from './keyed-lock.ts'
import type { Lookups } from './lookups.ts'
import { Managers } from './managers.ts'
import { parameterTable } from './parameter-table.ts'
import { namingReadFailures } from './read-failures.ts'
import { createRouter, type Router } from './router.ts'
import { GatewayStorage } from './stored-schema.ts'
import { targetLookups } from './target-lookups.ts'
import { UserView } from './user-view.ts'
import { VisibleLookups } from './visible-lookups.ts'

/** Changes that may wait or run at once in one gateway. */
const maxChanges = 4096

/** SCIM 2.0 in front of workflows: what clients ask to change runs a workflow, what they read comes from the target. */
export default defineFilter({
  className: 'filters.ScimGateway',
  aliases: ['com.tremolosecurity.proxy.filters.scim.Scim'],
  parameters: parameterTable,
  answers: true,
  errors: (error) => ({
    headers: { 'content-type': `${scimMediaType}; charset=utf-8` },
    body: JSON.stringify(errorBody(error)),
  }),
  parse: parseGatewayConfig,
  summarize,
  flow: gatewayFlow,
  create: async (config, host) => {
    const { value: router, scope } = await buildScoped(async (opened) => {
      const toInternal = opened.own(await config.toInternal.create(host))
      const toScim = opened.own(await config.toScim.create(host))
      const stored = namingReadFailures(createLookups(config, host))
      const marks = await openMarks(config, host, opened)
      // What doesn't fit is logged by the view that clients get.
      const silent = new UserView(config, toScim, silentLogger, stored)
      const lookups = new VisibleLookups(stored, marks, config, silent)
      const userView = new UserView(config, toScim, host.log, lookups)
      const router = createRouter({
        config,
        lookups,
        storage: new GatewayStorage(config, lookups, host),
        toInternal,
        userView,
        managers: new Managers(config, lookups, silent, host.log),
        groupView: new GroupView(config, lookups, host.log),
        workflows: host.workflows,
        lock: new KeyedLock(maxChanges),
        log: host.log,
      })
      return watched(router, config, host, opened)
    })
    return { handle: (exchange) => router(exchange), close: () => scope.close() }
  },
})

/** The router with what the operator asked for around it: events inside, so that the journal tells whether they failed. */
async function watched(router: Router, config: GatewayConfig, host: ModuleHost, opened: Scope): Promise<Router> {
  const { events, journal } = config
  let handler = router
  if (events !== undefined) {
    // Made or read now, so that a key that cannot be used stops the start and not a delivery.
    await host.keys.signingKey(events.stream.key)
    const stream = opened.own(host.openEventStream(events.stream))
    handler = announced(handler, { stream, payload: events.payload, log: host.log })
  }
  if (journal === 0) return handler
  return journaled(handler, opened.own(host.openJournal({ name: host.name, keep: journal })), host.clock)
}

/** By what users are looked up in, so that all gateways on one target agree. */
async function openMarks(config: GatewayConfig, host: ModuleHost, opened: Scope): Promise<DeletedMarks> {
  const { lookup, users } = config
  if (users.deletedAttribute !== undefined) return new AttributeMarks(users.deletedAttribute, host.clock)
  const place = lookup.kind === 'target' ? `target/${lookup.name}` : `directory/${lookup.base}`
  return new StoredMarks(opened.own(await host.openUserDirectory({ name: `scim-deleted/${place}` })), host.clock)
}

function createLookups(config: GatewayConfig, host: ModuleHost): Lookups {
  const { lookup } = config
  if (lookup.kind === 'directory') return new DirectoryLookups(host.directory, lookup.base, config)
  return targetLookups(host.targets.get(lookup.name), config)
}
