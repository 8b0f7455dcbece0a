import { defineTarget } from '#sdk/target.ts'
import { parseSql, type SqlTargetConfig } from './parse-sql.ts'
import { parameters } from './sql-parameters.ts'

/** Users and groups in the tables of an application, or behind statements. */
export default defineTarget<SqlTargetConfig>({
  className: 'targets.Sql',
  aliases: ['com.tremolosecurity.provisioning.core.providers.BasicDB'],
  parameters,
  parse: parseSql,
  /** Loaded where there is such a target: a gateway without one is smaller and starts sooner. */
  create: async (config, host) => (await import('./sql-target.ts')).openSqlTarget(config, host),
})
