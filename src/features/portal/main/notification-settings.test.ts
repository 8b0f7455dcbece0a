import { expect, test } from 'vitest'
import { openMain, outsider } from '#testing/modules/main-fixture.ts'

const path = '/notifications/settings'
const all = ['now', 'digest', 'never']
const usual = {
  sendsMail: true,
  mails: [
    { kind: 'approval', mail: 'now', choices: all },
    { kind: 'request', mail: 'now', choices: all },
    { kind: 'question', mail: 'now', choices: all },
    { kind: 'access', mail: 'never', choices: ['digest', 'never'] },
  ],
}

test('a user who chose nothing has the usual mails', async () => {
  const { send } = await openMain()
  expect((await send('GET', path)).body).toEqual(usual)
})

test('choices are stored for the caller alone, and others stay as they are', async () => {
  const { send } = await openMain()
  const mailOf = async (who?: ReturnType<typeof outsider>) =>
    (await send('GET', path, undefined, who)).body.mails.map(({ mail }: { mail: string }) => mail)
  const saved = await send('PUT', path, { mails: { approval: 'digest', access: 'digest' }, language: 'de' })
  expect(saved.body).toMatchObject({ language: 'de' })
  await send('PUT', path, { mails: { request: 'never' } })
  expect(await mailOf()).toEqual(['digest', 'never', 'now', 'digest'])
  expect((await send('GET', path)).body.language).toBe('de')
  expect(await mailOf(outsider('ann'))).toEqual(['now', 'now', 'now', 'never'])
})

test('without a job for digests no one can choose one, and earlier choices become the usual mails', async () => {
  const mail = { isConfigured: false, hasDigest: false }
  const { send } = await openMain({ portal: { mail } })
  const { body } = await send('GET', path)
  expect(body.sendsMail).toBe(false)
  expect(body.mails[0].choices).toEqual(['now', 'never'])
  expect(body.mails[3].choices).toEqual(['never'])
  await expect(send('PUT', path, { mails: { approval: 'digest' } })).rejects.toMatchObject({
    status: 400,
    publicText: 'mails.approval must be one of now, never.',
  })
})

test('an invalid body is rejected, with what is wrong', async () => {
  const { send } = await openMain()
  for (const body of [
    { mails: { approval: 'later' } },
    { mails: { other: 'now' } },
    { mails: { access: 'now' } },
    { mails: [] },
    { language: 'xx' },
    { language: 5 },
    { extra: true },
  ]) {
    await expect(send('PUT', path, body), JSON.stringify(body)).rejects.toMatchObject({ status: 400 })
  }
})
