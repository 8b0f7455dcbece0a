import { buildScoped } from '#kernel/scope.ts'
import { errorBody, scimMediaType } from '#protocols/scim/scim-error.ts'
import { defineFilter } from '#sdk/filter.ts'
import type { ModuleHost } from '#sdk/host.ts'
import { DirectoryLookups } from './directory-lookups.ts'
import { type GatewayConfig, gatewayFlow, parseGatewayConfig, summarize } from './gateway-config.ts'
import { GroupView } from './group-view.ts'
import { KeyedLock } from './keyed-lock.ts'
import type { Lookups } from './lookups.ts'
import { parameterTable } from './parameter-table.ts'
import { createRouter } from './router.ts'
import { targetLookups } from './target-lookups.ts'
import { UserView } from './user-view.ts'

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
      const lookups = createLookups(config, host)
      return createRouter({
        config,
        lookups,
        toInternal,
        userView: new UserView(config, toScim, host.log),
        groupView: new GroupView(config, lookups),
        workflows: host.workflows,
        lock: new KeyedLock(maxChanges),
        log: host.log,
      })
    })
    return { handle: (exchange) => router(exchange), close: () => scope.close() }
  },
})

function createLookups(config: GatewayConfig, host: ModuleHost): Lookups {
  const { lookup } = config
  if (lookup.kind === 'directory') return new DirectoryLookups(host.directory, lookup.base, config)
  return targetLookups(host.targets.get(lookup.name), config)
}
