import { expect, it } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { userSource } from '#identity/mapping/mapped-value.ts'
import { Issues } from '#kernel/issues.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext } from '#testing/modules/fake-parse.ts'
import defaultEmail from './default-email.ts'

it.each([
  [['a@x', 'b@x'], ['a@x']],
  [[], ['none@none.com']],
  [[''], ['none@none.com']],
])('mail %j gives %j', async (mail, expected) => {
  const mapper = await defaultEmail.prepare([], [], new Issues(), fakeParseContext())?.create(fakeModuleHost())
  const source = userSource({ userID: 'a', groups: [], attributes: Attributes.from({ mail }) })
  expect(await mapper?.map(source, 'email')).toEqual(expected)
})
