import { test } from 'vitest'
import { HostileCluster } from '#testing/hostile/hostile-cluster.ts'
import { trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { unstorable } from '#testing/hostile/hostile-entry.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { kubernetesUsersTarget } from './kubernetes-users-target.ts'

test('each hostile value passes through every lookup and write unchanged, in the requests to the cluster', {
  timeout: trialMillis,
}, async () => {
  const cluster = new HostileCluster()
  await hostileTrial(
    'Kubernetes users by request',
    kubernetesUsersTarget(() => cluster, 'people'),
    {
      attributes: ['mail', 'first_name'],
      batch: 20,
      mayRefuse: (place, value) => unstorable(place, value.replaceAll('\0', '')),
    },
  )
})
