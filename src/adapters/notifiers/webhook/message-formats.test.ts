import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type MessageFormat, messageBody } from './message-formats.ts'

const message = {
  id: 'id-1',
  recipient: '#slack',
  subject: 'Approval needed: <!channel> & *all*',
  text: 'ada asks for <https://evil.test|payroll>.\n\n[x](https://evil.test) _now_',
  links: [
    { label: 'Approve', url: 'https://gate.test/decide?token=a.b.c', style: 'primary' as const },
    { label: 'Open in the portal', url: 'https://gate.test/portal/approvals/1' },
  ],
  date: new Date('2026-01-02T03:04:05Z'),
}

const body = (format: MessageFormat, change: Partial<typeof message> = {}) =>
  JSON.parse(messageBody(format, { ...message, ...change })) as Record<string, unknown>

describe('a message', () => {
  test('for Slack has plain blocks without mentions, links or formatting from outside, and buttons', () => {
    const text = 'Approval needed: &lt;!channel&gt; &amp; *all*'
    expect(body('slack')).toEqual({
      text,
      mrkdwn: false,
      blocks: [
        { type: 'header', text: { type: 'plain_text', text, emoji: false } },
        {
          type: 'section',
          text: {
            type: 'plain_text',
            text: 'ada asks for &lt;https://evil.test|payroll&gt;.\n\n[x](https://evil.test) _now_',
            emoji: false,
          },
        },
        {
          type: 'actions',
          elements: [
            {
              type: 'button',
              text: { type: 'plain_text', text: 'Approve', emoji: false },
              url: 'https://gate.test/decide?token=a.b.c',
              style: 'primary',
            },
            {
              type: 'button',
              text: { type: 'plain_text', text: 'Open in the portal', emoji: false },
              url: 'https://gate.test/portal/approvals/1',
            },
          ],
        },
      ],
    })
  })

  test('for Slack without text and links has no empty blocks, which Slack refuses', () => {
    expect(body('slack', { text: ' \n', links: [] })['blocks']).toHaveLength(1)
  })

  test('for Teams is a card whose texts are runs without Markdown, one for each line', () => {
    const sent = body('teams') as { attachments: { contentType: string; content: Record<string, unknown> }[] }
    const [card] = sent.attachments
    expect(card?.contentType).toBe('application/vnd.microsoft.card.adaptive')
    expect(card?.content['body']).toEqual([
      {
        type: 'RichTextBlock',
        inlines: [{ type: 'TextRun', text: message.subject, weight: 'Bolder', size: 'Medium' }],
      },
      { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: 'ada asks for <https://evil.test|payroll>.' }] },
      { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: '[x](https://evil.test) _now_' }] },
    ])
    expect(card?.content['actions']).toEqual([
      {
        type: 'Action.OpenUrl',
        title: 'Approve',
        url: 'https://gate.test/decide?token=a.b.c',
        style: 'positive',
      },
      { type: 'Action.OpenUrl', title: 'Open in the portal', url: 'https://gate.test/portal/approvals/1' },
    ])
  })

  test('as JSON is unchanged', () => {
    expect(body('json')).toEqual({ ...message, date: '2026-01-02T03:04:05.000Z' })
  })

  test.each(['\u0001', '\ud800', '\u4e00', '"', 'x\n', '😀'])('of many %j is not too long for Teams', (part) => {
    const text = part.repeat(10_000)
    expect(Buffer.byteLength(messageBody('teams', { ...message, subject: text, text }))).toBeLessThan(28_000)
  })

  test('of any text stays within the limits of its receiver, and cuts no escape in two', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 50 }), fc.integer({ min: 1, max: 400 }), (part, times) => {
        const text = part.repeat(times)
        const { blocks = [] } = body('slack', { subject: text, text }) as { blocks: { text?: { text: string } }[] }
        for (const block of blocks) {
          const shown = block.text?.text ?? ''
          expect(shown.length).toBeLessThanOrEqual(3_000)
          expect(shown).not.toMatch(/[<>]|&(?!(?:amp|lt|gt);)/)
        }
        expect(Buffer.byteLength(messageBody('teams', { ...message, subject: text, text }))).toBeLessThan(28_000)
      }),
      { numRuns: 30 },
    )
  })
})
