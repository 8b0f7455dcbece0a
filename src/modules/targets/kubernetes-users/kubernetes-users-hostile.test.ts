import { test } from 'vitest'
import { kubernetesUsersTarget } from '#modules/targets/kubernetes-users/kubernetes-users-target.ts'
import { HostileCluster } from '#testing/hostile-cluster.ts'
import { trialMillis } from '#testing/hostile-coverage.ts'
import { unstorable } from '#testing/hostile-entry.ts'
import { hostileTrial } from '#testing/hostile-trial.ts'

test('each hostile value goes through every look-up and write as itself, by the requests that are made of it', {
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
