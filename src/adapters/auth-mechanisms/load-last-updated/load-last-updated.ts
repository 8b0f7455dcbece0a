import { type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { hasQueries, namePlaces } from '#sdk/target/query-target.ts'

const place = 'uid'

/**
 * Reads from a database when the account of the caller was last updated, for `gracePeriod` of auth.JitProvision after
 * it. The login passes without the attribute if the database has no time.
 */
export default defineAuthMechanism({
  className: 'auth.LoadLastUpdated',
  aliases: ['com.tremolosecurity.proxy.auth.LoadLastUpdatedAuth'],
  ...withParameters({
    lastUpdatedForUser: text({
      about: 'The attribute that gets the time: `lastUpdatedAttributeName` of auth.JitProvision.',
      required: true,
    }),
    target: text({ about: 'The SQL target to query.', required: true, reference: 'target' }),
    sql: text({
      about: 'One `select` whose first column is the time, in milliseconds since 1970; its `?` is the login.',
      required: true,
    }),
    uidAttributeName: text({
      about: "The caller's attribute that is the login. It must have exactly one value.",
      required: true,
    }),
  }),
  create: ({ lastUpdatedForUser, target: name, sql, uidAttributeName }, { targets }) => {
    const target = targets.get(name)
    if (!hasQueries(target)) throw new Error(`the target "${name}" is not a database that accepts SQL statements`)
    const statement = namePlaces(sql, place)
    return {
      async begin({ subject }): Promise<AuthOutcome> {
        if (subject === undefined) {
          return rejected('no user is signed in yet; put this mechanism after one that identifies the user')
        }
        const [login, second] = subject.attributes.values(uidAttributeName)
        if (login === undefined || login === '' || second !== undefined) {
          return rejected(`the caller has not exactly one "${uidAttributeName}"`)
        }
        const [row = {}] = await target.readRows(statement, { [place]: login }, 1)
        const [time = ''] = Object.values(row)
        const attributes = subject.attributes.clone()
        // A value that the caller brought must not count as the time.
        attributes.set(lastUpdatedForUser, time === '' ? [] : [time])
        return { kind: 'authenticated', subject: { ...subject, attributes } }
      },
    }
  },
})

const rejected = (reason: string): AuthOutcome => ({ kind: 'rejected', reason, status: 403 })
