import { Button, Paper, Stack, Text, Textarea, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useId } from 'react'
import type { RequestMessageView } from '#features/portal/contract/main-requests.ts'
import { usePerson } from '../app/config.tsx'
import { useTranslation } from '../app/i18n.tsx'
import { useDraft } from './draft.ts'
import { useSay } from './notices.tsx'
import { useNames } from './person-names.tsx'
import { Preline } from './preline.tsx'
import { maxReason } from './reason-field.tsx'
import { Failure } from './states.tsx'

interface RequestMessagesProps {
  readonly messages: readonly RequestMessageView[]
  /** What the user can write now. */
  readonly kind?: RequestMessageView['kind'] | undefined
  /** Keeps what the user typed. */
  readonly draft: string
  readonly send: (text: string) => Promise<void>
  readonly onSent: () => void
}

/** Questions of approvers to the requester, the answers, and a field for the next one. */
export function RequestMessages({ messages, kind, draft, send, onSent }: RequestMessagesProps) {
  const { t, dateTime, relative } = useTranslation()
  const nameOf = useNames()
  const id = useId()
  if (messages.length === 0 && kind === undefined) return null
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={id}>
      <Title order={2} size="h5" id={id} mb="xs">
        {t('messages.title')}
      </Title>
      <Stack gap="sm">
        {messages.length > 0 && (
          <Stack component="ol" gap="xs" className="bare-list">
            {messages.map((message) => (
              <li key={message.id}>
                <Text size="sm" c="dimmed">
                  {t(message.kind === 'question' ? 'messages.asked' : 'messages.answered', { who: nameOf(message.by) })}{' '}
                  ·{' '}
                  <time dateTime={message.at} title={dateTime(message.at)}>
                    {relative(message.at)}
                  </time>
                </Text>
                <Preline text={message.text} />
              </li>
            ))}
          </Stack>
        )}
        {kind !== undefined && <MessageForm kind={kind} draft={draft} send={send} onSent={onSent} />}
      </Stack>
    </Paper>
  )
}

type MessageFormProps = Required<Pick<RequestMessagesProps, 'draft' | 'send' | 'onSent'>> & {
  readonly kind: RequestMessageView['kind']
}

function MessageForm({ kind, draft, send, onSent }: MessageFormProps) {
  const { t } = useTranslation()
  const say = useSay()
  const [text, setText, clearText] = useDraft(usePerson().login, draft, '')
  const sending = useMutation({
    mutationFn: send,
    onSuccess: () => {
      setText('')
      clearText()
      say(t(kind === 'question' ? 'messages.questionSent' : 'messages.answerSent'))
    },
    onSettled: onSent,
  })
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() !== '') sending.mutate(text.trim())
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Textarea
          label={t(kind === 'question' ? 'messages.question' : 'messages.answer')}
          value={text}
          maxLength={maxReason}
          autosize
          minRows={2}
          maxRows={8}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        {sending.error !== null && <Failure error={sending.error} />}
        <Button
          type="submit"
          variant="default"
          w="fit-content"
          disabled={text.trim() === ''}
          loading={sending.isPending}
        >
          {t(kind === 'question' ? 'messages.ask' : 'messages.send')}
        </Button>
      </Stack>
    </form>
  )
}
