"""Word lists and sentence templates of the sample task, as data.

Lists are strings of entries split by `` / ``, wrapped anywhere. ``{name}`` is a slot filled from the list of that
name; ``{el}``, ``{un}``, ``{los}``, ``{s}`` and ``{p}`` ask for a person in that form. ``[X text]`` marks a
mention: P is PROFESION, S SITUACION_LABORAL, A ACTIVIDAD, F FIGURATIVA; ``[a …]`` and ``[f …]`` begin with the
ignored type A or F and go on inside P or S, which leaves an orphaned ``I-`` once ignored types are removed.

Nouns give their forms (masculine and feminine singular, then plural; or singular and plural) and a letter that
selects their complements. ``@`` ends a stem with the four forms -o, -a, -os, -as; ``+`` one with -, -a, -es, -as;
``^`` a singular whose plural takes -s. Frequent ones come first: the draw favours the head of the list.

Places are real; people and accounts are made up.
"""

PROFESSIONS = """
sanitari@ h / médic@ h / enfermer@ h / policía^ s / presidente presidenta presidentes presidentas p /
polític@ p / alcalde alcaldesa alcaldes alcaldesas p / periodista^ c / científic@ i / ministr@ p / doctor+ h
/ profesor+ e / director+ e / investigador+ i / juez jueza jueces juezas p / rastreador+ h / militar
militares s / bomber@ s / maestr@ e / diputad@ p / agente^ s / camarer@ v / celador+ h / empresari@ i /
cajer@ v / docente^ e / consejer@ p / cuidador+ h / transportista^ v / farmacéutic@ h / taxista^ v / abogad@
i / guardia^ s / auxiliar auxiliares h / portavoz portavoces p / concejal+ p / psicólog@ h / cociner@ v /
facultativ@ h / epidemiólog@ h / soldado^ s / repartidor+ v / camioner@ v / agricultor+ i / vigilante^ s /
secretari@ e / futbolista^ c / músic@ c / fisioterapeuta^ h / peluquer@ v / ingenier@ i / hosteler@ v /
limpiador+ v / cirujan@ h / pediatra^ h / entrenador+ c / fiscal fiscales p / economista^ i / fotógraf@ c /
porter@ v / obrer@ i / monitor+ e / piloto^ i / temporer@ i / informátic@ i / conserje^ v / electricista^ i
/ panader@ v / actor actriz actores actrices c / escritor+ c / anestesista^ h / ganader@ i / senador+ p /
fontaner@ i / albañil albañiles i / notari@ i / reporter@ c / asistente^ h
"""

# Professions that only the test pool may use.
TEST_PROFESSIONS = """
veterinari@ h / neumólog@ h / geriatra^ h / carter@ v / conductor+ v / socorrista^ s / logopeda^ h /
nutricionista^ h / sepulturer@ v / florista^ v / zapater@ v / sastre sastra sastres sastras v / librer@ v /
bibliotecari@ e / mariner@ i / pescador+ i / apicultor+ i / carpinter@ i / soldador+ i / mecánic@ i /
sociólog@ i / traductor+ c / intérprete^ c / guionista^ c / ilustrador+ c / jardiner@ v / azafat@ v /
biólog@ i / matemátic@ i / podólog@ h / estibador+ i / gruista^ i / chef^ v / comadrona^ h
"""

# Groups named as one: article, then the mention.
COLLECTIVES = """
el personal sanitario / la guardia civil / la policía local / la policía nacional / el personal de
enfermería / el personal de limpieza / el profesorado / el cuerpo de bomberos / la plantilla médica / el
equipo directivo / el personal docente / el personal facultativo
"""

STATUSES = """
trabajador+ x / autónom@ y / emplead@ x / parad@ y / estudiante^ z / jubilad@ y / desemplead@ y /
pensionista^ y / alumn@ z / compañer@ x / precari@ y / universitari@ z / becari@ z / despedid@ y /
asalariad@ y / interin@ x
"""

COMPLEMENTS = {
    "h": """
de UCI / de urgencias / de atención primaria / de familia / de la residencia / de planta / del hospital / en
formación
""",
    "s": "del ayuntamiento / de montes / de guardia / de tráfico / de la comarca",
    "e": """
de colegio / de instituto / de infantil / de primaria / de universidad / de historia / de música
""",
    "v": "de supermercado / de barrio / de hotel / de comedor escolar / a domicilio",
    "p": "de Sanidad / del Gobierno / de la comunidad / de Hacienda / en funciones / de la oposición",
    "c": "de sucesos / de televisión / de teatro / de una radio local / de la cantera",
    "i": """
de la construcción / de montaña / del campo / de una empresa pequeña / de obras / de la industria
""",
    "x": """
de la limpieza / por cuenta propia / por cuenta ajena / de la sanidad / de residencias / del metro / de
hogar / del comercio / de servicios mínimos
""",
    "y": "de larga duración / sin ayudas / del barrio",
    "z": "de medicina / de segundo / de instituto / de universidad",
}

# People who are not mentions, many with endings that professions have.
PEOPLE = """
vecin@ / paciente^ / ciudadan@ / abuel@ / contagiad@ / turista^ / pasajer@ / usuari@ / enferm@ / niñ@ /
consumidor+ / viajer@ / negacionista^ / propietari@ / madrileñ@ / extranjer@ / seguidor+ / optimista^ /
inquilin@ / caser@ / foraster@ / cliente^ / joven jóvenes / lector+ / mayor mayores / amig@ / expert@ /
solter@ / espectador+ / hereder@ / bañista^ / residente^ / fumador+ / andaluz andaluza andaluces andaluzas /
asintomátic@ / ancian@ / manifestante^ / tertulian@ / votante^ / comprador+
"""

WORDS = {
    "lugar": """
Madrid / Sevilla / Barcelona / Valencia / Zaragoza / Málaga / Murcia / Bilbao / Granada / Toledo / Cuenca /
Soria / Lugo / Ourense / Gijón / Cádiz / Huelva / Jaén / Almería / Teruel / Huesca / Lleida / Girona /
Burgos / León / Zamora / Ávila / Segovia / Cáceres / Badajoz / Mérida / Albacete / Alicante / Castellón /
Tarragona / Pamplona / Vitoria / Logroño / Santander / Ceuta / Melilla / Cartagena / Andalucía / Galicia /
Canarias / Chile / México / Perú / Colombia / Italia
""",
    "sitio": """
hospital de {lugar} / centro de salud / ambulatorio / mercado / supermercado de {lugar} / instituto /
ayuntamiento de {lugar} / barrio / aeropuerto / polideportivo / pueblo / puerto de {lugar} / colegio de
{lugar}
""",
    "tema": """
el confinamiento / la desescalada / la vuelta al cole / el toque de queda / la segunda ola / el uso de
mascarillas / la fase {d} / la cuarentena / el estado de alarma / la vacuna / el cierre de los bares / la
falta de tests / los rebrotes / el pico de contagios / la nueva normalidad / la hidroxicloroquina / las
residencias / el turismo / los recortes / la sanidad pública / la inmunidad de grupo / el precio del gel /
los bulos / la app de rastreo / las fronteras / la economía / los alquileres / el deporte sin público / las
misas / los síntomas / la Semana Santa / las fiestas / la selectividad / el curso online / las PCR / los
datos de hoy / el virus / la pandemia / las UCI / la gestión de todo esto / el plan de {lugar} / las colas
del hambre
""",
    "cosa": """
mascarillas / tests / guantes / EPI / respiradores / ayudas / camas / pruebas / noticias / excusas / vacunas
/ medios / vacaciones / respuestas / productos / aplausos / promesas / batas / pantallas / refuerzos / ganas
""",
    "dicho": """
esto no ha terminado / nadie nos avisó / lo peor está por venir / hay que quedarse en casa / faltan {cosa} /
las cifras de {lugar} no cuadran / saldremos de esta / el virus no entiende de clases / no damos abasto / ya
está bien / van {n} casos en {lugar} / el {dia} abrirán otra vez / {tema} no tiene sentido / con {cosa} no
basta
""",
    "rutina": """
lloro al llegar a casa / no veo a mi familia desde {mes} / trabajo {d} horas sin parar / ya no puedo más /
sigo al pie del cañón / nadie me ha hecho un test / me lavo las manos {n} veces al día / cobro lo mismo que
en {mes} / vivo en {lugar} / solo pido {cosa} / {tema} me tiene frito
""",
    "accion": """
cuidarnos tanto / no parar ni un día / repartir {cosa} / abrir cada mañana / el esfuerzo / la paciencia /
dar la cara / explicar {tema} / quedarse
""",
    "pasado": """
venció al virus / perdió a su madre en {mes} / se contagió en {lugar} / cosió {n} mascarillas / cantó desde
el balcón / volvió a casa tras {n} días / dijo no a {tema}
""",
    "falta": """
pasear sin mascarilla / saltarse {tema} / organizar una fiesta en {lugar} / escupir en el bus / salir {d}
veces en un día / viajar a {lugar}
""",
    "familia": """
madre / hermana / prima / cuñada / tía / vecina / novia / amiga / suegra / sobrina / hija / nuera
""",
    "hombre": """
padre / hermano / primo / cuñado / tío / vecino / novio / amigo / suegro / sobrino / hijo / yerno
""",
    "dia": "lunes / martes / miércoles / jueves / viernes / sábado / domingo / próximo lunes / día {n}",
    "mes": "enero / febrero / marzo / abril / mayo / junio / julio / agosto / octubre / noviembre",
    "apellido": """
Valdeprado / Otañeda / Robledizo / Cantamora / Peñalosada / Ruyfresno / Mirasolar / Torrealbina / Encinosa /
Lagunedo / Berrozal / Castañarga
""",
    "adv": """
ya / de verdad / por favor / en serio / otra vez / un día más / como siempre / desde luego / al final / hoy
""",
    "emoji": """
\U0001f637 / \U0001f9a0 / \U0001f4aa / \U0001f447 / \U0001f534 / \u26a0\ufe0f / \U0001f3e5 / \U0001f621 /
\U0001f64f\U0001f3fc / \U0001f469\u200d\u2695\ufe0f / \U0001f926\U0001f3fb\u200d\u2640\ufe0f /
\U0001f44f\U0001f3fd / \u2764\ufe0f / \U0001f1ea\U0001f1f8 / \u27a1\ufe0f /
\U0001f468\u200d\U0001f469\u200d\U0001f467 / \U0001f602\U0001f602\U0001f602 / \U0001f1e8\U0001f1f1 /
\U0001f44f\U0001f44f\U0001f44f / \U0001f937\U0001f3fe\u200d\u2642\ufe0f / \U0001f914 / \U0001f1ee\U0001f1f9
/ \u25b6\ufe0f / \U0001f4e2 / \u0301
""",
    "tag": """
#COVID19 / #coronavirus / #QuedateEnCasa / #COVIDー19 / #EsteVirusLoParamosUnidos / #YoMeQuedoEnCasa /
#Covid_19 / #cuarentena / #{lugar} / #desescalada / #NuevaNormalidad / #AplausoSanitario / #fase{d} /
#AlertaMédica / #SanidadPública / #EstadoDeAlarma / #díaDelLibro / #GuíaCovid / #28Abril / #UltimaHora /
#Confinamiento / #FelizLunes
""",
    "user": """
@vecina_del_{n} / @usuario{n} / @diario_inventado / @radio_barrio{n} / @ampa_cole{d} / @noticias_al_{n} /
@tweet{n}{d}
""",
    "cap": """
Buenos días / Atención / Hilo / Última hora / Ojo / Señores / Opinión / Vídeo / Madre mía / A ver / Por
cierto / Vergüenza / En {lugar} / Dato / Sobre {tema} / Hoy / Este {dia} / Increíble / RT
""",
}

INTERJECTIONS = """
Ánimo / Vaya tela / Qué vergüenza / No me lo creo / Lo que faltaba / Mucha fuerza / Sin palabras / Olé / Así
nos va / Qué pena / Tal cual / Enhorabuena / Qué risa / Buenas noches desde {lugar} / Otro {dia} más / Ya
queda menos / Menudo {mes}
"""

HEADS = """
{cap}: / {emoji} {cap} / {cap}, / {user} / {emoji} {tag} | / ¡Ánimo! / {tag} / {emoji}{cap}:
"""

TAILS = """
{tag} {tag} / {tag} / {tag} {tag} {tag} {tag} / {emoji} / {emoji} {tag} / vía {user} / {user} / ánimo
{emoji} / {tag} {user} / ({dia})
"""

# Slots of these stand for a mention or, for a person who is none.
PERSONS = """
{los} piden más {cosa} en {lugar} / {los} llevan {n} días sin {cosa} / gracias a {los} de {lugar} por
{accion} / hoy ha dado positivo {un} en {lugar} / he hablado con {un} y dice que {dicho} / {el} del {sitio}
me ha contado que {dicho} / el aplauso de hoy va por {los} / {un} de {n} años, grave en el {sitio} / faltan
{p} y sobran {cosa} / {los} salen a protestar por {tema} / nadie piensa en {los} / ¿qué pasa con {los}? /
denuncian {los} de {lugar} la situación con {tema} / más de {n} {p} con síntomas en {lugar} / «{dicho}»,
afirma {un} de {lugar} / queremos tests para {los} {adv} / según {el} del {sitio}, {dicho} / fallece {un} de
{n} años en {lugar} / soy {s} y {rutina} / {los} merecen más que {cosa} / ni {los} ni {los} tienen {cosa} /
{los} y {los} de {lugar}, contra {tema} / hoy entrevistan a {el} sobre {tema} / {un} cuenta cómo vive {tema}
/ multan a {un} por {falta} / buscan {p} para el {sitio} / el testimonio de {un} que {pasado} / para {los}
esto es una ruina / ojalá {el} lea esto / hay {n} {p} en cuarentena por {tema} / {el} no sabe nada de {tema}
/ dejen en paz a {los} / como {s} no entiendo {tema} / cada vez más {p} hablan de {tema} / le pregunté a
{un} por {tema} y nada / me ha llamado {un} desde {lugar} / ¿dónde están {los} cuando hace falta {tema}? /
cartel de {un}: "{dicho}" / otro {s} que {pasado} / {los} también son víctimas / mi {familia} y {un} hacen
{cosa} para el {sitio} / vivo con {un} y {rutina} / reunión con {los} para hablar de {tema} / la rabia de
{los} tras {tema} / {p} de {lugar} recogen {cosa} / quién cuida a {los}
"""

FILLERS = """
{tema} nos va a costar caro / van ya {n} casos en {lugar} / no entiendo {tema} / en {lugar} siguen sin
{cosa} / {dicho} / mañana {dia} más datos sobre {tema} / ¿alguien sabe algo de {tema}? / ¿cuándo llegan
{cosa} a {lugar}? / me quedo en casa y {rutina} / todo sobre {tema} en este enlace / el gobierno aprueba
{tema} para {mes} / {n} fallecidos en {lugar} en las últimas {n} horas / lo de {tema} no tiene nombre / hoy
toca hablar de {tema} / la curva baja en {lugar} y sube en {lugar} / mi {familia} ha hecho pan otra vez / he
visto {d} series desde {mes} / ponte la mascarilla {adv} / lávate las manos {adv} / los bares de {lugar}
abren el {dia} / cuánto echo de menos {lugar} / el {sitio} está vacío / ojo con {tema}, que luego pasa lo
que pasa / esto con {tema} no pasaba / nos dijeron que {dicho} / solo pienso en {tema} / las mascarillas a
{d} euros, qué robo / tanto hablar de {tema} y sin {cosa} / llevamos {n} días y seguimos sin {cosa} / el
virus llegó a {lugar} en {mes} / se suspende todo hasta {mes} / a las {d} todos al balcón / cierran el
{sitio} por un brote / abierto el plazo para pedir {cosa} hasta el {dia} / me duele la cabeza de tanto
{tema} / mi {hombre} dice que {dicho} / la OMS recomienda {cosa} contra {tema} / qué bonito está el cielo en
{lugar} / os recomiendo leer esto sobre {tema} / el {n} % de los casos es leve / {lugar} pasa a la fase {d}
/ han subido la luz, el gas y {cosa} / nueva jornada de {tema} en {lugar} / no hay {cosa} en todo {lugar} /
igual que en {mes} pero peor / buscan un perro perdido en {lugar} / la culpa de {tema} la tenemos todos /
que alguien me explique {tema} / si sigue {tema}, adiós al {dia} / ayer en {lugar} hubo {n} altas / ¿y
{tema} para cuándo? / compro {cosa} en el {sitio} y vuelvo / dicen que {dicho}, pero no / desde el {sitio}
informan de {n} positivos / el {dia} vuelve el fútbol a {lugar} / con {tema} se ha parado el mundo / esto es
{lugar} en {mes} / ni un paso atrás con {tema} / propongo {cosa} gratis {adv} / sí se puede, {lugar} / nos
vemos en los bares de {lugar} / había {cosa} de sobra y nadie lo dijo / gracias, {lugar}
"""

# Clauses with words that are a mention elsewhere and none here.
DECOYS = """
no hay cura para {tema} / buscan una cura en {lugar} / la cura va a ser peor que la enfermedad / la guía de
{tema} ya está en la web / descarga la guía sobre {tema} / publican guía para {mes} / un control de policía
en {lugar} / película de policía y ladrones para el {dia} / menudo estado policía nos espera / noche de
guardia en el {sitio} / farmacia de guardia en {lugar} / no bajemos la guardia con {tema} / en {lugar} bajan
la guardia / la cámara del móvil no me enfoca / la Cámara vota {tema} el {dia} / la moral por los suelos
tras {tema} / qué doble moral con {tema} / cortada la calle Presidente {apellido} en {lugar} / el hotel
Presidente de {lugar} cede {n} camas / material médico para {lugar} / falta material médico en el {sitio} /
el parte médico de {lugar}: {n} ingresos / centros médicos cerrados en {lugar} / informes médicos y {cosa} /
la ciencia médica no da más / crisis sanitaria en {lugar} / la emergencia sanitaria sigue en {mes} / los
gastos sanitarios suben con {tema} / protocolos sanitarios para {tema} / productos sanitarios caducados en
{lugar} / el sistema sanitario de {lugar} / control sanitario en el {sitio} / las autoridades sanitarias
piden {cosa} / colapso sanitario en {lugar} / la clase obrera no puede con {tema} / esto lo paga la clase
obrera / el rey de la casa es mi gato / roscón de rey en pleno {mes} / proyecto piloto en {lugar} con {tema}
/ una prueba piloto con {n} personas / se enciende el piloto del horno / el modelo de {lugar} no funciona /
otro modelo de {tema} es posible / la secretaría de {tema} no contesta / el monitor del ordenador echa humo
/ he comprado un monitor para {mes} / un canguro suelto en el zoo de {lugar} / el asistente de voz no
entiende {tema} / cada asistente al acto dio {n} euros / la circulación interna del virus en {lugar} / una
guerra interna por {tema} / comunidad autónoma de {lugar} / cada comunidad autónoma hace lo que quiere / el
gobierno autónomo cierra {lugar} / un robot autónomo reparte {cosa} / el reloj parado en {mes} / todo parado
en {lugar} / el tren parado en {lugar} {n} minutos / un brote en activo en {lugar} / hay {n} focos en activo
/ un paro en los contagios de {lugar} / sube el paro en {lugar} / el paro en {mes}, por las nubes / la
tensión de baja, y yo sin {cosa} / las cifras van de baja en {lugar} / la investigación científica no se
para / evidencia científica sobre {tema} / la revista científica lo publica en {mes} / decisión política
sobre {tema} / la política de {lugar} me aburre / hacen política con {tema} / ruido político con {tema} / el
abogado del diablo con {tema} / un cajero sin billetes en {lugar} / el cajero del banco no funciona / barco
bombero en el puerto de {lugar} / el director de orquesta virtual es una app / plan director de {lugar} para
{mes} / línea directora contra {tema} / ruta militar por {lugar} / hospital militar de {lugar} / gasto
militar en plena pandemia / la música del {sitio} suena mal / agente químico contra {tema} / el agente
infeccioso llegó en {mes} / ingreso fiscal de {lugar}, a cero / año fiscal perdido por {tema} / la
informática del {sitio} falla / el auxiliar de voz del coche / máquina limpiadora para {lugar} / agua
limpiadora y {cosa} / el sector empleado en {tema} / el método empleado en {lugar} / tarjeta universitaria
de {lugar} / hospital universitario de {lugar} / empleo precario y {tema} / futuro precario en {lugar} /
perro policía en {lugar} / soldado de plomo a {d} euros
"""

# The same words as mentions, told by their context alone; and hashtags, handles, titles.
PROFESSION_CONTEXTS = """
un [P policía] me ha parado en {lugar} / la [P policía] multa a {n} personas en {lugar} / [P policía] y
vecinos contra {tema} / el aplauso de hoy va por los [P sanitarios] / dimite el [P presidente] por {tema} /
los [P médicos] de {lugar} piden {cosa} / el [P presidente] {apellido} habla de {tema} / señor [P
presidente], ¿y {tema}? / faltan [P médicos] y sobran {cosa} / soy [P médico] y {rutina} / el [P médico] me
dijo que {dicho} / otro [P médico] muerto en {lugar} / la [P policía] desaloja una fiesta en {lugar} / [P
médicos] y [P enfermeras] sin {cosa} / los [P sanitarios] sin {cosa} / aplauso a los [P sanitarios] / {n} [P
sanitarios] contagiados en {lugar} / [P personal sanitario] sin {cosa} / gracias al [P personal sanitario]
de {lugar} / los [P profesionales sanitarios] piden {cosa} / el [P rey] visita {lugar} / mensaje del [P rey]
sobre {tema} / homenaje {tag} a {los} [P #sanitarios] / el [P cura] de {lugar} da misa por internet / un [P
cura] bendice el {sitio} / la [P guía] del museo de {lugar} nos lo explicó / mi {familia} es [P guía]
turística en {lugar} / la [P guardia] del {sitio} no me dejó pasar / un [P guardia] me pidió los papeles /
el [P cámara] de la tele con mascarilla / [P Presidente], {dicho} / el [P presidente del Gobierno] comparece
el {dia} / la [P presidenta] de {lugar} anuncia {cosa} / la [P sanitaria] del {sitio} llora / una [P juez]
investiga {tema} / el [P piloto] del avión a {lugar} dio positivo / mi {hombre} es [P piloto] y {rutina} /
la [P modelo] posa con mascarilla / un [P soldado] desinfecta el {sitio} / la [P secretaria] del {sitio} no
contesta / el [P monitor] del gimnasio da clase por el móvil / busco [P canguro] para el {dia} / el [P
portero] de mi casa limpia con lejía / la [P asistente] de mi abuela no tiene {cosa} / trabaja de [P
interna] en {lugar} / un [P celador] de {lugar} con fiebre / la [P Dra.] {apellido} explica {tema} / el [P
Dr.] {apellido} pide {cosa} / el [P doctor] {apellido} habla claro / el [P ministro de Sanidad] y {tema} /
la [P consejera de Sanidad] dice que {dicho} / la [P científica] del {sitio} tenía razón / la [P directora
de colegio] cuenta {tema} / [P directora de la residencia] detenida en {lugar} / [P trabajadores de la
limpieza] del {sitio} / las [P trabajadoras del hogar] sin {cosa} / los [P técnicos de ambulancia] de
{lugar} / mi {familia} es [P médica] y {rutina} / el [P político] de turno con {tema} / la [P cajera] del
{sitio} tose / el [P cajero] del {sitio} me sonrió / el [P militar] que {pasado} / [P #médicos] {tag} en
{lugar} / todo el apoyo, [P #enfermeras] de {lugar} / [P #policía] en {lugar} {tag} / orgullo de [P
#PersonalSanitario] {tag} / gracias [P @policia_local_{n}] / bravo [P @bomberos_sector{d}] por {accion} /
esto lo lee [P @ministro_ejemplo] / #[P GuardiaCivil] en {lugar} / la [P guardia civil] corta {lugar} / [P
guardias civiles] en cuarentena
"""

STATUS_CONTEXTS = """
los [S trabajadores] de {lugar} piden {cosa} / {n} [S trabajadores] del {sitio} con síntomas / mi {hombre}
sigue [S en paro] desde {mes} / los [S parados] de {lugar} hacen cola / los [S autónomos] cierran en {lugar}
/ los [S trabajadores] del {sitio} sin {cosa} / [S #autónomos] {tag} en {lugar} / ya estoy [S en ERTE] por
{tema} / me han metido en un [S ERTE] / {n} [S ERTES] en {lugar} / un [S parado] de {n} años / mi {familia}
está [S de baja] por {tema} / soy [S autónomo] y {rutina} / soy [S autónoma] y pago {tema} / los [S
trabajadores por cuenta propia] de {lugar} piden {cosa} / [S trabajadoras] del {sitio} en lucha / estoy [S
sin trabajo] y {rutina} / mi {hombre}, [S jubilado], cose {cosa} / los [S jubilados] de {lugar} salen / mi
{familia} sigue [S en activo] a los {n} años / me he quedado [S desempleada] en {mes} / los [S estudiantes]
de {lugar} contra {tema} / {n} [S empleados] del {sitio} a la calle / mi {familia} vive del [S paro] / día
{n} de [S teletrabajo] / [S #teletrabajo] {tag} / una [S empleada del hogar] de {lugar} / cae en [S
desempleo] por {tema} / un [S alumno] del {sitio} da positivo
"""

IGNORED = """
los [A voluntarios] reparten {cosa} en {lugar} / una [A voluntaria] del {sitio} / el [A activista] de
{lugar} habla de {tema} / los [A cofrades] sin procesión / son unos [F payasos] con {tema} / mi {hombre}, [F
rey] del sofá / [F bufón] de {lugar} / [A ama de casa] y {rutina}
"""

ORPHANS = """
la [a voluntaria sanitaria] de {lugar} / un [a cooperante médico] en {lugar} / los [a voluntarios bomberos]
del {sitio} / unos [f virreyes autónomos] en {lugar}
"""
