import { expect, test } from 'vitest'
import { link, openMain, org, workflow } from '#testing/modules/main-fixture.ts'

const german = {
  Portal: 'Portal der Firma',
  Welcome: 'Willkommen',
  Team: 'Mannschaft',
  Red: 'Rot',
  'Org root': 'Wurzel',
  'Link wiki': 'Wiki-Link',
  'Workflow join': 'Beitreten',
  'Lets you in': 'Läßt Sie ein',
  'Project work': 'Projektarbeit',
}

const open = (language: string) =>
  openMain({
    language,
    texts: new Map([['de', new Map(Object.entries(german))]]),
    params: { reasonIsList: 'true', reasons: ['Project work', 'Other'] },
    portal: {
      orgs: [org('root')],
      urls: [link('wiki')],
      workflows: [workflow('join', { description: 'Lets you in' })],
    },
  })

test('texts of the configuration are in the language of the caller, and vary by it', async () => {
  const { send } = await open('de-AT, en;q=0.5')
  const config = await send('GET', '/config')
  expect(config.headers['vary']).toBe('accept-language')
  expect(config.body).toMatchObject({
    frontPage: { title: 'Portal der Firma', text: 'Willkommen' },
    reasons: ['Projektarbeit', 'Other'],
    attributes: { team: { displayName: 'Mannschaft', values: [{ name: 'Rot', value: 'red' }, { name: 'Blue' }] } },
  })
  expect((await send('GET', '/orgs')).body).toMatchObject({ id: 'root', name: 'Wurzel' })
  expect((await send('GET', '/urls')).body).toMatchObject([{ name: 'wiki', label: 'Wiki-Link' }])
  expect((await send('GET', '/workflows/org/root')).body).toMatchObject([
    { name: 'join', label: 'Beitreten', description: 'Läßt Sie ein' },
  ])
  expect((await send('GET', '/search?q=beitr')).body).toMatchObject({ workflows: [{ name: 'join' }] })
})

test('callers of other languages get the texts as written', async () => {
  const { send } = await open('fr')
  const { body, headers } = await send('GET', '/config')
  expect(body).toMatchObject({ frontPage: { text: 'Welcome' }, reasons: ['Project work', 'Other'] })
  expect(headers['vary']).toBe('accept-language')
  const plain = await (await openMain()).send('GET', '/config')
  expect(plain.headers['vary']).toBeUndefined()
})

test('a translated reason is stored as configured, and one of no language is refused', async () => {
  const { send, runs } = await open('de')
  const line = { uuid: 'u1', name: 'join' }
  expect((await send('PUT', '/workflows', [{ ...line, reason: 'Projektarbeit' }])).body).toEqual({ u1: 'success' })
  expect((await send('PUT', '/workflows', [{ ...line, uuid: 'u2', reason: 'Irgendwas' }])).body).toEqual({
    u2: 'Reason is not in the list',
  })
  expect(JSON.stringify(runs.calls)).toContain('"Project work"')
})
