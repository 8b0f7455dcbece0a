import type { ScimHost } from '#features/scim/host.ts'
import { jsonBody } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { silentLogger } from '#kernel/logger.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import { errorBody, scimMediaType } from '#protocols/scim/schema/scim-error.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { scimApi } from './api-description.ts'
import { withJournal } from './call-journal.ts'
import { DirectoryLookups } from './directory-lookups.ts'
import { type GatewayConfig, lookupPlace, parseGatewayConfig, summarize } from './gateway-config.ts'
import { type Lookups, targetLookups } from './lookups.ts'
import { Managers } from './managers.ts'
import { parameterTable } from './parameter-table.ts'
import { GroupMapping, UserMapping } from './resource-mapping.ts'
import { createRouter } from './router.ts'
import type { Router } from './scim-call.ts'
import { withEvents } from './security-events.ts'
import { GatewayStorage, gatewayFlow } from './stored-schema.ts'
import { UnfinishedChanges } from './unfinished-changes.ts'
import { attributeMarks, type DeletedMarks, storedMarks, VisibleLookups } from './visible-lookups.ts'

/** Changes that may wait or run at the same time in one gateway. */
const maxChanges = 4096

/** SCIM 2.0 in front of workflows: changes run a workflow, reads come from the target. */
export default defineFilter({
  className: 'filters.ScimGateway',
  aliases: ['com.tremolosecurity.proxy.filters.scim.Scim'],
  parameters: parameterTable,
  answers: true,
  errors: (error) => ({
    headers: { 'content-type': `${scimMediaType}; charset=utf-8` },
    body: jsonBody(errorBody(error)),
  }),
  parse: parseGatewayConfig,
  summarize,
  flow: gatewayFlow,
  api: scimApi,
  create: async (config, host: ScimHost) => {
    const { value: router, scope } = await buildScoped(async (opened) => {
      const toInternal = opened.own(await config.toInternal.create(host))
      const toScim = opened.own(await config.toScim.create(host))
      const stored = createLookups(config, host)
      const marks = await openMarks(config, host, opened)
      // Stored values that do not fit are logged once, by the mapping that answers clients.
      const silent = new UserMapping(config, { toScim, toInternal }, silentLogger, stored)
      const lookups = new VisibleLookups(stored, marks, config, silent)
      const router = createRouter({
        config,
        lookups,
        storage: new GatewayStorage(config, lookups, host),
        users: new UserMapping(config, { toScim, toInternal }, host.log, lookups),
        groups: new GroupMapping(config, lookups, host.log),
        managers: new Managers(config, lookups, silent, host.log),
        workflows: host.workflows,
        unfinished: new UnfinishedChanges(config, host, await host.runs.hasUnfinished().catch(() => true)),
        queue: new KeyedQueue({ maxPending: maxChanges }),
        log: host.log,
      })
      return withEventsAndJournal(router, config, host, opened)
    })
    return { handle: (exchange) => router(exchange), close: () => scope.close() }
  },
})

function createLookups(config: GatewayConfig, host: ScimHost): Lookups {
  const { lookup } = config
  if (lookup.kind === 'directory') return new DirectoryLookups(host.directory, lookup.base, config)
  return targetLookups(host.targets.get(lookup.name), config)
}

/** Stored under what users are looked up in, so that all gateways on one target share the marks. */
async function openMarks(config: GatewayConfig, host: ScimHost, opened: Scope): Promise<DeletedMarks> {
  const { lookup, users } = config
  if (users.deletedAttribute !== undefined) return attributeMarks(users.deletedAttribute, host.clock)
  return storedMarks(
    opened.own(await host.openUserDirectory({ name: `scim-deleted/${lookupPlace(lookup)}` })),
    host.clock,
  )
}

/** Events are inside the journal, so that the journal shows if they failed. */
async function withEventsAndJournal(
  router: Router,
  config: GatewayConfig,
  host: ScimHost,
  opened: Scope,
): Promise<Router> {
  const { events, journal } = config
  let handler = router
  if (events !== undefined) {
    // Read or created now, so that an unusable key stops the start and not a delivery.
    await host.keys.signingKey(events.stream.key)
    const { append } = opened.own(host.eventStreams.open(events.stream))
    handler = withEvents(handler, { append, payload: events.payload, log: host.log })
  }
  if (journal === 0) return handler
  const { add } = opened.own(host.journals.open({ name: host.name, keep: journal }))
  return withJournal(handler, add, host.clock)
}
