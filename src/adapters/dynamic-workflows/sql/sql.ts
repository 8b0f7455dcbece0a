import { GatewayError } from '#kernel/errors.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { hasQueries } from '#sdk/target/query-target.ts'
import { defineDynamicWorkflow } from '#sdk/workflow/dynamic-workflow.ts'

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
  ...withParameters(parameters),
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
