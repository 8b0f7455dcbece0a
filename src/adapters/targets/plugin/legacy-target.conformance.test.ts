import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { onTestFinished, test } from 'vitest'
import { callMillis, trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { legacyTargetScript } from '#testing/targets/legacy-script.ts'
import plugin from './plugin.ts'

const sample = readFileSync(new URL('../../../../examples/plugin-target/target.ts', import.meta.url), 'utf8')

async function open(javaScript: string) {
  const prepared = plugin.prepare(
    fakeParams({ javaScript, memoryMegabytes: '256', timeoutSeconds: String(callMillis / 1000) }),
    noIssues(),
    fakeParseContext(tmpdir()),
  )
  const target = await prepared.create(fakeModuleHost())
  onTestFinished(() => target.close?.())
  return target
}

/** Both store any text. A script of OpenUnison parses filters itself, of at most 8,192 characters. */
const options = { attributes: ['mail', 'cn'], mayRefuse: () => false, batch: 50 } as const

test('plug-in: each hostile value passes through every lookup and write unchanged', {
  timeout: trialMillis,
}, async () => {
  await hostileTrial('plug-in', await open(sample), options)
})

test('legacy script: each hostile value passes through every lookup and write unchanged', {
  timeout: trialMillis,
}, async () => {
  await hostileTrial('legacy script', await open(legacyTargetScript()), {
    ...options,
    fixedGroups: true,
    pack: 12,
    longestInFilter: 300,
  })
})
