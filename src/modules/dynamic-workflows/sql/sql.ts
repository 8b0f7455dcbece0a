import { GatewayError } from '#kernel/errors.ts'
import { defineDynamicWorkflow } from '#sdk/dynamic-workflow.ts'
import { text } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { hasQueries } from '#sdk/query-target.ts'

const parameters = {
  target: text({ about: 'The Target, a `targets.Sql`, whose database is read.', required: true, reference: 'target' }),
  sql: text({
    about:
      'One `select`; each row is a set of parameters, named after its columns. `:uid` is the login of the requester.',
    required: true,
  }),
}

const maxSets = 1_000

/** One row of a workflow for each row of a table. */
export default defineDynamicWorkflow({
  className: 'dynamicWorkflows.Sql',
  aliases: ['com.tremolosecurity.provisioning.dynamicwf.DBTargetDynamicWF'],
  parameters,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  create: ({ target: name, sql }, host) => {
    const target = host.targets.get(name)
    if (!hasQueries(target)) throw new Error(`the target "${name}" is not a database that accepts SQL statements`)
    return {
      async parameterSets({ uid }) {
        const rows = await target.readRows(sql, { uid }, maxSets + 1)
        if (rows.length > maxSets) {
          throw new GatewayError('TARGET_FAILED', `the statement of "${host.name}" gives more than ${maxSets} rows`)
        }
        return rows
      },
    }
  },
})
