"""Short texts that are hard to tokenise, for the checks of ``nerprobe doctor``.

Spanish as it is typed on a phone: accents in both Unicode forms, emoji with joiners and variation selectors,
ellipses, hashtags, inverted marks, links, compatibility characters, and writing from right to left.
"""

from __future__ import annotations

from nerprobe.items import Item, join_words

HARD_TEXTS = (
    "La enfermera del turno de noche lleva doce horas sin parar",
    "¿Cuándo vuelven a abrir las peluquerías? Mi peluquera está en paro",
    "¡¡INDIGNANTE!! Los MÉDICOS sin mascarillas y el gerente en su casa…",
    "Gracias a los camioneros 🚛, a las cajeras 🛒 y al personal de limpieza 🧹",
    "Mi madre es auxiliar de enfermería 👩🏽‍⚕️ y mi padre bombero 👨‍🚒 ❤️",
    "Familia completa en casa 👨‍👩‍👧‍👦 desde el lunes 🏠",
    "🇪🇸🇲🇽🇦🇷 Un abrazo a todos los maestros que dan clase por videollamada",
    "Soy autónomo , cobro 0 € y pago la cuota ... ¿ alguien lo entiende ?",
    "#QuédateEnCasa #YoMeQuedoEnCasa #covid_19 #AplausoSanitario a las 20:00h",
    "@vecina_del_5 dice que el cartero ya no sube #cuarentena",
    "Más info en https://example.org/ertes?id=42&tipo=2#requisitos",
    "RT @ejemplo: la policía pone 1.234,56 € de multa por salir a correr",
    "El me\u0301dico y la me\u0301dica del pueblo, an\u0303o tras an\u0303o, sin relevo",
    "Pingu\u0308ino, cigu\u0308en\u0303a y verg\u00fcenza: tres palabras con diéresis",
    "Trabajo de 8½ a 3¼, 2ª planta, 1er turno, nº 7, a 25º y 30㎏ de cajas",
    "“Los celadores también existen”, ‘dijo’ «el sindicato» — y con razón",
    "Funcionario… jubilado… desempleado… ¿y ahora qué…?",
    "Conductora de ambulancia\u2026y madre de tres\u2026 sin dormir",
    "Se busca camarero/a con experiencia (media jornada) 600€/mes LOL",
    "jajajajajajajajajaja el ministro jajajaja xdddddd",
    "GOOOOOOOOL del utilleroooooooooooooooooooooooooooooooo",
    "Ánimo\u200b a\u200bl personal\u200b del 112",
    "El far\u00adma\u00adcéu\u00adti\u00adco del barrio reparte mascarillas",
    "\ufeffPeriodista en primera línea, sin contrato",
    "Empleada\u00a0del\u00a0hogar sin derecho a paro\u202f: 540\u202f€",
    "Corazón ❤ con y sin selector ❤️ ❤\ufe0e , teléfono ☎️ y ☎",
    "\ufe0f suelto , \u200d suelto y \u0301 suelto entre palabras",
    "👍🏻👍🏼👍🏽👍🏾👍🏿 para todas las repartidoras",
    "🏳️‍🌈 profe de instituto · opositora · 💪🏾",
    "1️⃣ lavarse las manos 2️⃣ no tocarse la cara #️⃣ *️⃣",
    "المترجم وصل اليوم y el intérprete llegó ayer",
    "عربي con español : الممرضة es la enfermera",
    "שלום a la doctora que habla hebreo 🙏",
    "Precio\u200f: 30 €\u200e , dijo el panadero",
    "El cocinero 料理人 prepara 寿司 para el hospital",
    "한국어 profesora de coreano , クラス en línea",
    "Врач из Мадрида y γιατρός en Atenas",
    "Jefe de obra ⇒ paro ⇒ ERTE ⇒ ¯\\_(ツ)_/¯",
    "a",
    "…",
    "😷",
    "¿?",
    "#",
    "EE.UU., S.A., p.m., D.ª, Sres. y Vd. en el mismo tuit",
    "O'Higgins, d'Ors y l'Hospitalet; el guardia civil y la fiscal",
    "Ing. agrónomo, Lic. en Química y Dr. en Física, los tres en el paro",
    "La soldado, la jueza, la pilota y la música: ¿la médico o la médica?",
    "Albañil/fontanero/electricista 24h ☎ 600-000-000",
    'fontanero.24h@example.org <urgencias> &amp; "reformas" [sin coste]',
    "Ⅷ congreso de enfermería, ﬁn de semana, coﬀee break, №3, ™ y ©",
    "𝓭𝓸𝓬𝓽𝓸𝓻 𝗲𝗻𝗳𝗲𝗿𝗺𝗲𝗿𝗮 Ｄｏｃｔｏｒａ ⓐⓑⓒ",
    "İzmir, straße, ŒUVRE, Ångström, Łódź: la traductora no descansa",
    "Y el repartidor:\u2028dos líneas\u2029y un párrafo",
    "Vigilantes_de_seguridad sin EPIs :-( :'( <3 xD ;)",
    "100% de acuerdo con la #FarmaceúticaDeGuardia +1 👏👏👏",
    "Investigadora del CSIC: R₀≈2,5 ± 0,3; 10⁻³ m²; H₂O; 5 µg",
    "- Abuelo, ¿qué eras? - Minero. - ¿Y ahora? - Pensionista.",
    "ESTOY HARTA DE SER LA ÚNICA SOCORRISTA DE LA PLAYA!!!1!",
    "Becario a los 30 , parado a los 40 , ¿ jubilado a los 80 ?",
    "Operador de grúa 🏗️ , soldadora 👩‍🏭 y astronauta 👩🏿‍🚀 en un ascensor 🛗",
    "Nin~o , espan~a , man~ana : el teclado del estibador no tiene en~e",
    "Cuidadora interna, 24/7, sin contrato, sin descanso, sin nombre. Así no.",
)


def hard_items() -> list[Item]:
    """Return the texts as items, words split at plain spaces, without mentions."""
    items = []
    for number, text in enumerate(HARD_TEXTS):
        words = text.split(" ")
        joined, starts, ends = join_words(words, [False] * len(words))
        items.append(
            Item(
                item_id=f"hard-{number}",
                pool="test",
                text=joined,
                words=tuple(words),
                starts=starts,
                ends=ends,
                tags=("O",) * len(words),
            )
        )
    return items
