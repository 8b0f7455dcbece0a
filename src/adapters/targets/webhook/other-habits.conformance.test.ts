import { test } from 'vitest'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { asSteps } from '#testing/targets/as-steps.ts'
import { openWebhook } from '#testing/targets/crm-application.ts'
import { PeopleApi } from '#testing/targets/people-api.ts'
import { peopleParams } from '#testing/targets/people-params.ts'

const open = (params: ParamValues) => async () => {
  const api = await PeopleApi.start()
  const target = asSteps(await openWebhook({ ...params, url: api.url }))
  const close = async (): Promise<void> => {
    await target.close?.()
    await api.close()
  }
  return { target, close }
}

const suite = {
  test: (name: string, run: () => Promise<void>) => test(name, run),
  attributes: ['mail', 'displayName', 'phone'] as const,
  exactLogins: true,
}

/** Users are replaced as a whole, including their units. */
targetConformance('webhook, whole users', open(peopleParams.whole), suite)

/** Units have their own requests, and nothing can be searched. */
targetConformance('webhook, no lookups', open(peopleParams.units), { ...suite, lookups: false })
