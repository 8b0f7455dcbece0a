import type { Subject } from '#identity/subject.ts'
import { type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { workloadAttributes } from '#sdk/target/service-account.ts'

const parameters = {
  cluster: text({ about: 'The name of the cluster in rules and subjects.', required: true }),
}

const clusterName = /^[A-Za-z0-9._-]{1,63}$/
const accountName = /^system:serviceaccount:([^:]+):([^:]+)$/

/** Adds the attributes that rules about workloads read to a service account that an earlier mechanism established. */
export default defineAuthMechanism({
  className: 'auth.ServiceAccount2Claims',
  aliases: ['com.tremolosecurity.proxy.auth.ServiceAccount2Claims'],
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    if (given.cluster !== '' && !clusterName.test(given.cluster)) {
      issues.error(params.pathOf('cluster', 0), `"cluster": "${given.cluster}" is not allowed in a subject`)
    }
    return given
  },
  create: ({ cluster }) => {
    /** The same caller gets the same answer, so that decisions about it can be remembered. */
    const answers = new WeakMap<object, AuthOutcome>()
    const claim = async (subject: Subject | undefined): Promise<AuthOutcome> => {
      const known = subject === undefined ? undefined : answers.get(subject)
      if (known !== undefined) return known
      const [username, ...others] = subject?.attributes.values('username') ?? []
      const [, namespace, account] = accountName.exec(others.length === 0 ? (username ?? '') : '') ?? []
      if (subject === undefined || namespace === undefined || account === undefined) {
        return { kind: 'rejected', reason: 'no earlier mechanism of the chain established a service account' }
      }
      const attributes = workloadAttributes(cluster, namespace, account, subject.attributes)
      const { level: _, chain: __, ...kept } = subject
      const outcome: AuthOutcome = { kind: 'authenticated', subject: { ...kept, attributes } }
      answers.set(subject, outcome)
      return outcome
    }
    return { begin: ({ subject }) => claim(subject), renew: claim }
  },
})
