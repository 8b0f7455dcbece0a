import { Button, Group, NativeSelect, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { ExplanationView } from '#features/portal/contract/console-configuration.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { call } from '../../../api/call.ts'
import { admin } from '../../../api/console.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Failure } from '../../../components/states.tsx'
import { Status } from '../../../components/status.tsx'
import { Section } from '../section.tsx'
import { readAttributes } from './read-attributes.ts'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

interface Question {
  readonly method: string
  readonly url: string
  readonly login?: string
  readonly dn?: string
  readonly attributes?: ReturnType<typeof readAttributes>['attributes']
}

/** About a request that is not sent: would it be allowed, and why. */
export function Explain() {
  const { t } = useTranslation()
  const explained = useMutation({
    mutationFn: (body: Question) => call<ExplanationView>(admin(consoleRoutes.explainRequest), { body }),
  })
  return (
    <Section title={t('explain.title')}>
      <Text size="sm" c="dimmed">
        {t('explain.intro')}
      </Text>
      <QuestionForm onAsk={explained.mutate} isPending={explained.isPending} />
      {explained.error !== null && <Failure error={explained.error} />}
      {explained.data !== undefined && <Explanation {...explained.data} />}
    </Section>
  )
}

interface QuestionFormProps {
  readonly onAsk: (question: Question) => void
  readonly isPending: boolean
}

function QuestionForm({ onAsk, isPending }: QuestionFormProps) {
  const { t } = useTranslation()
  const [method, setMethod] = useState('GET')
  const [url, setUrl] = useState(window.location.origin)
  const [login, setLogin] = useState('')
  const [attributes, setAttributes] = useState('')
  const read = readAttributes(attributes)
  const ask = (event: FormEvent): void => {
    event.preventDefault()
    if (read.wrong !== undefined) return
    onAsk({
      method,
      url,
      ...(login.trim() === '' ? {} : { login: login.trim() }),
      ...(read.dn === undefined ? {} : { dn: read.dn }),
      ...(Object.keys(read.attributes).length === 0 ? {} : { attributes: read.attributes }),
    })
  }
  return (
    <form onSubmit={ask}>
      <Stack gap="sm" align="start">
        <Group gap="sm" align="end">
          <NativeSelect
            label={t('dashboard.method')}
            value={method}
            onChange={(event) => setMethod(event.currentTarget.value)}
            data={methods}
          />
          <TextInput
            label={t('explain.url')}
            value={url}
            maxLength={2000}
            required
            onChange={(event) => setUrl(event.currentTarget.value)}
            className="search-box"
          />
          <TextInput
            label={t('explain.login')}
            description={t('explain.loginHint')}
            value={login}
            maxLength={200}
            onChange={(event) => setLogin(event.currentTarget.value)}
          />
        </Group>
        <Textarea
          label={t('explain.attributes')}
          description={t('explain.attributesHint')}
          value={attributes}
          autosize
          minRows={2}
          maxRows={8}
          maxLength={10_000}
          onChange={(event) => setAttributes(event.currentTarget.value)}
          error={read.wrong === undefined ? undefined : t('explain.wrongLine', { line: read.wrong })}
          className="search-box"
        />
        <Button type="submit" loading={isPending}>
          {t('explain.button')}
        </Button>
      </Stack>
    </form>
  )
}

function Explanation({ allowed, lines }: ExplanationView) {
  const { t } = useTranslation()
  return (
    <Stack gap="xs" role="status">
      <Status
        tone={allowed ? 'good' : 'bad'}
        icon={allowed ? 'check' : 'close'}
        text={t(allowed ? 'explain.allowed' : 'explain.denied')}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys have to reach it */}
      <section className="explanation" tabIndex={0} aria-label={t('explain.lines')}>
        <pre>{lines.map(isolated).join('\n')}</pre>
      </section>
    </Stack>
  )
}
