import type { MailLink } from '#sdk/mail/new-mail.ts'
import type { OutgoingMail } from '#sdk/notifier/notifier.ts'

export const messageFormats = ['slack', 'teams', 'json'] as const
export type MessageFormat = (typeof messageFormats)[number]

type Message = Pick<OutgoingMail, 'id' | 'recipient' | 'subject' | 'text' | 'links' | 'date'>

/** The body that the receiver expects. Texts never become markup, mentions or links of the receiver. */
export const messageBody = (format: MessageFormat, message: Message): string => JSON.stringify(formats[format](message))

const formats: Readonly<Record<MessageFormat, (message: Message) => object>> = {
  slack: (message) => slackMessage(printable(message)),
  teams: (message) => teamsMessage(printable(message)),
  json: ({ id, recipient, subject, text, links, date }) => ({
    id,
    recipient,
    subject,
    text,
    links,
    date: date.toISOString(),
  }),
}

/** Without control characters, which JSON writes with six bytes each, so that a message would exceed its limit. */
const printable = ({ subject, text, ...message }: Message): Message => {
  const plain = (said: string): string => said.toWellFormed().replace(/(?![\n\t])\p{Cc}/gu, '')
  return { ...message, subject: plain(subject), text: plain(text) }
}

/** Slack accepts texts of this length, also after escaping. */
const slackText = 3_000
const slackHeader = 150
const slackLabel = 75

/** Blocks of the type `plain_text`: Slack reads no formatting in them, and decodes the three escaped characters. */
function slackMessage({ subject, text, links }: Message): object {
  const plain = (said: string, longest: number) => ({
    type: 'plain_text',
    text: cut(said, longest, slackEscaped),
    emoji: false,
  })
  const button = ({ label, url, style }: MailLink) => ({
    type: 'button',
    text: plain(label, slackLabel),
    url,
    ...(style === undefined ? {} : { style }),
  })
  return {
    // For notifications and readers without blocks.
    text: cut(subject, slackText, slackEscaped),
    mrkdwn: false,
    blocks: [
      { type: 'header', text: plain(subject, slackHeader) },
      ...(text.trim() === '' ? [] : [{ type: 'section', text: plain(text.trim(), slackText) }]),
      ...(links.length === 0 ? [] : [{ type: 'actions', elements: links.map(button) }]),
    ],
  }
}

/** `<` begins mentions and links in every text of Slack. */
const slackEscaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Teams refuses messages of more than 28 KB. */
const teamsText = 4_000
const teamsLines = 50

/** An adaptive card. Its texts are runs of a RichTextBlock, in which Teams reads no Markdown; each line is a block. */
function teamsMessage({ subject, text, links }: Message): object {
  const line = (said: string, style: object = {}) => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text: said, ...style }],
  })
  const lines = cut(text, teamsText)
    .split('\n')
    .filter((one) => one.trim() !== '')
    .slice(0, teamsLines)
  const styles = { primary: 'positive', danger: 'destructive' } as const
  const card = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body: [line(cut(subject, 300), { weight: 'Bolder', size: 'Medium' }), ...lines.map((one) => line(one))],
    actions: links.map(({ label, url, style }) => ({
      type: 'Action.OpenUrl',
      title: label,
      url,
      ...(style === undefined ? {} : { style: styles[style] }),
    })),
  }
  const attachment = { contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content: card }
  return { type: 'message', attachments: [attachment] }
}

/** At most that long when written, without half a character or half an escape at the end. */
function cut(text: string, longest: number, written: (text: string) => string = (same) => same): string {
  const whole = written(text)
  if (whole.length <= longest) return whole
  let shown = ''
  for (const character of text) {
    const next = written(character)
    if (shown.length + next.length >= longest) break
    shown += next
  }
  return `${shown}…`
}
