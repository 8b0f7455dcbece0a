import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/browser/chromium.ts'
import { ask, expectAccessible, follow, heading, picture, usePortal } from '#testing/browser/portal-browser.ts'

const label = 'Access to the vault for Ada Lovelace'

describe.skipIf(!hasChromium())('an approver', () => {
  const { visit } = usePortal()

  test('asks the requester, passes the approval on, and finds decisions again', async () => {
    const { page: ada, complaints } = await visit('/portal/request', 'ada')
    await ask(ada, 'Access to the vault', 'On call')
    await ada.getByRole('link', { name: 'View in My requests' }).click()
    await ada.getByRole('link', { name: 'Access to the vault' }).click()
    await ada.getByText('Waiting for: Grace Hopper, Mary Jackson').waitFor()

    const { page: grace, complaints: hers } = await visit('/portal/approvals?show=decided', 'grace')
    await grace.getByText('No decisions yet').waitFor()
    await grace.getByText('Waiting for you').click()
    await grace.getByRole('link', { name: label }).click()
    await grace.getByRole('textbox', { name: 'Question to the requester' }).fill('For <b>how</b> long?')
    await grace.reload()
    await grace.getByRole('button', { name: 'Ask' }).click()
    await grace.getByText('Grace Hopper (grace) asked').waitFor()
    await expectAccessible(grace, 'an approval with a question')

    await ada.getByText('For <b>how</b> long?').waitFor()
    await follow(ada, 'Home')
    const attention = ada.getByRole('region', { name: 'Needs your attention' })
    await attention.getByRole('link', { name: 'Grace Hopper asks about your request: Access to the vault' }).click()
    await ada.getByRole('textbox', { name: 'Your answer' }).fill('One night')
    await expectAccessible(ada, 'a request with a question')
    await ada.getByRole('button', { name: 'Answer' }).click()
    await ada.getByText('Ada Lovelace answered').waitFor()
    expect(await ada.getByRole('textbox', { name: 'Your answer' }).count()).toBe(0)
    await grace.reload()
    await grace.getByText('One night').waitFor()

    await grace.getByRole('button', { name: 'Reassign' }).click()
    const dialog = grace.getByRole('dialog', { name: 'Reassign' })
    await dialog.getByRole('button', { name: 'Reassign' }).click()
    await dialog.getByText('Choose a person.').waitFor()
    await dialog.getByRole('textbox', { name: 'New approver' }).fill('joan')
    await dialog.getByRole('option').first().click()
    await expectAccessible(grace, 'the dialog to reassign an approval')
    await picture(grace, 'approval-reassign')
    await dialog.getByRole('button', { name: 'Reassign' }).click()
    await grace.getByText(`${label} is now with Joan Clarke`).waitFor()
    await grace.getByText("You're all caught up").waitFor()

    const { page: joan } = await visit('/portal/approvals', 'joan')
    await joan.getByRole('link', { name: label }).click()
    await joan.getByText('One night').waitFor()
    await joan.getByRole('button', { name: 'Approve' }).click()
    await joan.getByText(`Approved: ${label}`).waitFor()
    await joan.getByText('Decided by you').click()
    await joan.getByRole('link', { name: label }).getByText('Approved').waitFor()
    await expectAccessible(joan, 'the history of decisions')
    await picture(joan, 'approvals-decided')
    await joan.getByRole('link', { name: label }).click()
    await heading(joan, label)
    await joan.getByText('Joan Clarke (joan) ·').waitFor()
    await ada.getByText('approved by Joan Clarke').waitFor()
    expect([complaints, hers]).toEqual([[], []])
  })
})
