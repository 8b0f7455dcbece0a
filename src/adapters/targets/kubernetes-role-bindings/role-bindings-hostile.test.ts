import { test } from 'vitest'
import { HostileCluster } from '#testing/hostile/hostile-cluster.ts'
import { trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { clusterRoleBindings, people, roleBindings, roleBindingsTarget } from './role-bindings-target.ts'

test('each hostile value passes through every lookup and write unchanged, in the requests to the cluster', {
  timeout: trialMillis,
}, async () => {
  const cluster = new HostileCluster()
  const subjects = [{ kind: 'Group', name: 'staff' }]
  await cluster.create({ ...roleBindings, namespace: 'shop' }, { metadata: { name: 'viewers' }, subjects })
  await cluster.create(clusterRoleBindings, { metadata: { name: 'auditors' }, subjects })
  await hostileTrial(
    'Kubernetes role bindings by request',
    roleBindingsTarget(() => cluster, people),
    {
      attributes: [],
      groups: ['rb:shop:viewers', 'crb:auditors'],
      mayRefuse: (_, value) => !value.isWellFormed(),
    },
  )
})
